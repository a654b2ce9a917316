//! A store of a test's own, and the servers on it.

use std::panic::AssertUnwindSafe;
use std::process::Command as StdCommand;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anabranch_store::testing::TestDatabase;
use futures::FutureExt;
use tokio::process::Command;
use tokio::task::JoinHandle;
use tokio_postgres::Client;

use super::requests::Answer;
use super::server::Server;
use super::support::Place;
use super::wire::Wire;

/// A server that a test has stopped is no frozen one: its sessions may idle, and others wait.
pub const PATIENT: &str =
    "&options=-c%20idle_in_transaction_session_timeout%3D120s%20-c%20lock_timeout%3D120s";
/// No scenario takes this long, unless something that it waits for never comes.
const END: Duration = Duration::from_secs(300);
/// Between two looks at what the database says.
const NEXT_LOOK: Duration = Duration::from_millis(5);

/// What the store is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    Sqlite,
    Postgres,
    Optimistic,
    /// PostgreSQL without the partition lock: what goes well there goes well by luck.
    Unprotected,
}

pub struct World {
    pub engine: Engine,
    pub place: Place,
    database: Option<TestDatabase>,
    /// A command that runs the program in surroundings of the test's own.
    surroundings: Mutex<Vec<String>>,
}

/// Runs a test in a fresh world, which goes away with it.
pub async fn in_world<F, T>(engine: Engine, test: impl FnOnce(Arc<World>) -> F) -> T
where
    F: Future<Output = T>,
{
    let database = match engine {
        Engine::Sqlite => None,
        _ => Some(TestDatabase::create().await),
    };
    let world = Arc::new(World {
        engine,
        place: Place::new(),
        database,
        surroundings: Mutex::default(),
    });
    let ended = tokio::time::timeout(END, test(Arc::clone(&world)));
    let ended = AssertUnwindSafe(ended).catch_unwind().await;
    if let Some(World {
        database: Some(database),
        ..
    }) = Arc::into_inner(world)
    {
        database.remove().await;
    }
    match ended {
        Ok(Ok(value)) => value,
        Ok(Err(_)) => panic!("something that the test waits for never came"),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

impl World {
    /// The arguments that name the store; sessions of the server are called `name` in PostgreSQL.
    pub fn store(&self, name: &str, more: &str) -> Vec<String> {
        let url = self.database.as_ref().map(TestDatabase::url);
        self.store_at(&url.unwrap_or_default(), name, more)
    }

    fn store_at(&self, url: &str, name: &str, more: &str) -> Vec<String> {
        let mode = match self.engine {
            Engine::Sqlite => return vec!["--data-dir".to_owned(), "data".to_owned()],
            Engine::Postgres => "pessimistic",
            Engine::Optimistic => "optimistic",
            Engine::Unprotected => "unprotected",
        };
        let store = format!("{url}?mode={mode}&application_name={name}{more}");
        let warehouse = self.warehouse();
        let arguments = [
            "--store",
            &store,
            "--warehouse",
            &warehouse,
            "--data-dir",
            "data",
        ];
        arguments.map(str::to_owned).to_vec()
    }

    /// A wire to the database.
    pub async fn wire(&self) -> Wire {
        Wire::to(&self.database().url()).await
    }

    /// A session of the test's own in the database.
    pub async fn client(&self) -> Client {
        self.database().client().await
    }

    fn database(&self) -> &TestDatabase {
        self.database.as_ref().expect("an engine of PostgreSQL")
    }

    fn command(&self, verb: &str, arguments: &[String]) -> Command {
        let program = self.place.command(&[verb]);
        let surroundings = self.surroundings.lock().unwrap();
        let mut command = match surroundings.split_first() {
            None => program,
            Some((first, more)) => {
                let mut around = StdCommand::new(first);
                around
                    .args(more)
                    .arg(program.get_program())
                    .args(program.get_args());
                around.env_clear().current_dir(self.place.path());
                around
            }
        };
        command.args(arguments);
        Command::from(command)
    }

    /// Runs programs behind this command from now on; by themselves if it has no words.
    pub fn run_behind(&self, words: &[&str]) {
        let words = words.iter().map(|&word| word.to_owned());
        *self.surroundings.lock().unwrap() = words.collect();
    }

    /// Starts a server whose sessions wait as long as the test needs.
    pub async fn server(&self, name: &str) -> Server {
        self.server_with(name, &[], PATIENT).await
    }

    /// Starts a server with more flags, and with more parameters in the store's URL.
    pub async fn server_with(&self, name: &str, flags: &[&str], parameters: &str) -> Server {
        self.start(&self.store(name, parameters), flags).await
    }

    /// Starts a server that reaches PostgreSQL over this wire.
    pub async fn server_over(
        &self,
        wire: &Wire,
        name: &str,
        flags: &[&str],
        parameters: &str,
    ) -> Server {
        let store = self.store_at(&wire.url, name, parameters);
        self.start(&store, flags).await
    }

    async fn start(&self, store: &[String], flags: &[&str]) -> Server {
        let mut command = self.command("serve", store);
        command.args(["--listen", "127.0.0.1:0"]).args(flags);
        let log = self.place.path().join("log");
        Server::start(command, &log, self.warehouse()).await
    }

    /// Where the files are, as a URL.
    pub fn warehouse(&self) -> String {
        let folder = match self.engine {
            Engine::Sqlite => "data/warehouse",
            _ => "warehouse",
        };
        format!("file://{}/{folder}", self.place.path().display())
    }

    /// Every standing invariant of the store and its documents holds; else what doesn't.
    pub async fn doctor(&self) -> Result<(), String> {
        let mut doctor = self.command("doctor", &self.store("doctor", ""));
        let ended = doctor.output().await.expect("a process");
        match ended.status.success() {
            true => Ok(()),
            false => Err(format!(
                "doctor: {}{}",
                String::from_utf8_lossy(&ended.stdout),
                String::from_utf8_lossy(&ended.stderr)
            )),
        }
    }

    /// What all servers have said.
    pub fn log(&self) -> String {
        self.place.log()
    }

    /// Changes the store behind the servers' back.
    pub async fn run_sql(&self, sql: &str) {
        match self.engine {
            Engine::Sqlite => self.sqlite().execute_batch(sql).unwrap(),
            _ => self
                .database()
                .client()
                .await
                .batch_execute(sql)
                .await
                .unwrap(),
        }
    }

    /// The number that a query answers.
    pub async fn count(&self, sql: &str) -> i64 {
        match self.engine {
            Engine::Sqlite => self.sqlite().query_row(sql, (), |row| row.get(0)).unwrap(),
            _ => self
                .database()
                .client()
                .await
                .query_one(sql, &[])
                .await
                .unwrap()
                .get(0),
        }
    }

    fn sqlite(&self) -> rusqlite::Connection {
        let connection =
            rusqlite::Connection::open(self.place.path().join("data/catalog.db")).unwrap();
        connection.busy_timeout(END).unwrap();
        connection
    }

    /// Returns `true` once a session of the server `waiting` waits for a lock that one of `holding`
    /// holds, as PostgreSQL says; `false` if the request was answered instead.
    pub async fn is_blocked(
        &self,
        waiting: &str,
        holding: &str,
        request: &JoinHandle<Option<Answer>>,
    ) -> bool {
        self.is_blocked_by_one_of(waiting, &[holding], request)
            .await
    }

    /// The same for one of several.
    pub async fn is_blocked_by_one_of(
        &self,
        waiting: &str,
        holding: &[&str],
        request: &JoinHandle<Option<Answer>>,
    ) -> bool {
        let client = self.client().await;
        loop {
            let found = client.query_one(BLOCKED, &[&waiting, &holding]).await;
            if found.unwrap().get::<_, bool>(0) {
                return true;
            }
            if request.is_finished() {
                return false;
            }
            tokio::time::sleep(NEXT_LOOK).await;
        }
    }
}

const BLOCKED: &str = "SELECT EXISTS (\
     SELECT FROM pg_stat_activity w, pg_stat_activity h \
     WHERE w.datname = current_database() AND w.application_name = $1 \
       AND h.application_name = ANY ($2) AND h.pid = ANY (pg_blocking_pids(w.pid)))";
