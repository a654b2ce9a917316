//! Commits of three tables in three databases, named in another order by each server.

use std::sync::Arc;

use serde_json::json;

use super::scenario::{Ended, answer, look, must, prepare, stand, three};
use crate::requests::*;
use crate::server::Server;
use crate::world::{Engine, World};

/// Of each server, once the order of the first three is shown.
const CLIENTS: usize = 6;
const DATABASES: [&str; 3] = ["one", "two", "three"];
const NAMES: [&str; 3] = ["a", "b", "c"];

/// Each server in turn stands before its COMMIT when the others come; then many at once.
pub async fn commits_in_rotating_order_all_end(world: Arc<World>) -> Ended {
    let servers = three(&world).await;
    set_up(&servers[0]).await;
    for stands in 0..3 {
        let [second, third] = [(stands + 1) % 3, (stands + 2) % 3];
        let (pause, standing) = stand(&servers[stands], &all_three(stands, stands)).await;
        let mut waiting = Vec::from([standing]);
        for which in [second, third] {
            let sent = servers[which].spawn(&all_three(which, stands));
            match world.engine {
                Engine::Postgres => {
                    let waits = world
                        .is_blocked_by_one_of(NAMES[which], &NAMES, &sent)
                        .await;
                    must(waits, || "somebody didn't wait".to_owned())?;
                    waiting.push(sent);
                }
                _ => {
                    let told = answer(sent).await?;
                    must(told.status == 204, || format!("told {told:?}"))?;
                }
            }
        }
        pause.resume().await;
        for sent in waiting {
            let told = answer(sent).await?;
            must(told.status == 204, || format!("told {told:?}"))?;
        }
    }
    let many = (0..CLIENTS).flat_map(|client| (0..3).map(move |which| (which, 3 + client)));
    let many: Vec<_> = many
        .map(|(which, key)| servers[which].spawn(&all_three(which, key)))
        .collect();
    for sent in many {
        let told = answer(sent).await?;
        must(told.status == 204, || format!("told {told:?}"))?;
    }
    for database in DATABASES {
        let table = look(&servers[0], &load_table(database, "t")).await?;
        let found = table["metadata"]["properties"]
            .as_object()
            .expect("an object");
        let keys = found.keys().filter(|key| key.starts_with("by-")).count();
        must(keys == 3 * (3 + CLIENTS), || {
            format!("{keys} keys: {found:?}")
        })?;
    }
    nobody_was_a_victim(&servers).await
}

/// Somebody holds the last database and asks for the first while a server goes the right way.
pub async fn who_goes_against_the_order_makes_a_victim(world: Arc<World>) -> Ended {
    const LATE_TO_LOOK: &str = "&options=-c%20lock_timeout%3D120s%20-c%20deadlock_timeout%3D3s";
    let a = world.server_with("a", &[], LATE_TO_LOOK).await;
    set_up(&a).await;
    let mut stranger = world.client().await;
    let never_looks = "SET deadlock_timeout = '100s'; SET application_name = 'stranger'";
    stranger.batch_execute(never_looks).await.unwrap();
    let held = stranger.transaction().await.unwrap();
    let databases = "SELECT p.id FROM partition p JOIN current c ON c.object = p.id \
         WHERE c.name = ANY ($1) ORDER BY p.id";
    let databases = held.query(databases, &[&&DATABASES[..]]).await.unwrap();
    let [first, .., last] = databases.as_slice() else {
        panic!("{databases:?}");
    };
    let (first, last): (i64, i64) = (first.get(0), last.get(0));
    let lock = "SELECT FROM partition WHERE id = $1 FOR UPDATE";
    held.query_one(lock, &[&last]).await.unwrap();
    let sent = a.spawn(&all_three(0, 0));
    let waits = world.is_blocked("a", "stranger", &sent).await;
    assert!(waits, "somebody holds it");
    held.query_one(lock, &[&first]).await.unwrap();
    held.rollback().await.unwrap();
    let told = answer(sent).await?;
    must(told.status == 204, || format!("told {told:?}"))?;
    nobody_was_a_victim(&[a]).await
}

async fn set_up(server: &Server) {
    for database in DATABASES {
        prepare(
            server,
            &[create_namespace(database), create_table(database, "t")],
        )
        .await;
    }
}

/// Names the databases in an order that begins with this one.
fn all_three(first: usize, key: usize) -> Request {
    let changes = (0..3).map(|step| {
        let database = DATABASES[(first + step) % 3];
        let set = set_property(&format!("by-{}-{key}", NAMES[first]), "1");
        change(database, "t", json!([]), set)
    });
    commit_many(&changes.collect::<Vec<_>>())
}

async fn nobody_was_a_victim(servers: &[Server]) -> Ended {
    for server in servers {
        let victims = server
            .measured(r#"anabranch_retries_total{reason="Deadlock"}"#)
            .await;
        must(victims == 0, || format!("a deadlock had {victims} victims"))?;
    }
    Ok(())
}
