//! Many clients of three servers, all on the properties of one namespace.

use std::sync::Arc;

use super::scenario::{Ended, answer, look, must, prepare, stand, three};
use crate::requests::{create_namespace, load_namespace, set_namespace_property};
use crate::world::{Engine, World};

/// Of each server.
const CLIENTS: usize = 8;

/// One stands before its COMMIT while all others come.
pub async fn no_property_of_many_is_lost(world: Arc<World>) -> Ended {
    let servers = three(&world).await;
    let [a, b, c] = &servers;
    prepare(a, &[create_namespace("db"), create_namespace("db.in")]).await;
    let set = |name: &str, client| set_namespace_property("db.in", &format!("{name}{client}"), "1");

    let (pause, standing) = stand(a, &set("a", 0)).await;
    let behind: Vec<_> = (1..CLIENTS)
        .map(|client| a.spawn(&set("a", client)))
        .collect();
    let of_b: Vec<_> = (0..CLIENTS)
        .map(|client| b.spawn(&set("b", client)))
        .collect();
    let of_c: Vec<_> = (0..CLIENTS)
        .map(|client| c.spawn(&set("c", client)))
        .collect();
    let mut answers = Vec::new();
    let mut sent = Vec::from([standing]);
    sent.extend(behind);
    match world.engine {
        Engine::Postgres => {
            let b_waits = world.is_blocked_by_one_of("b", &["a", "c"], &of_b[0]).await;
            let c_waits = world.is_blocked_by_one_of("c", &["a", "b"], &of_c[0]).await;
            must(b_waits && c_waits, || "somebody didn't wait".to_owned())?;
            sent.extend(of_b.into_iter().chain(of_c));
        }
        _ => {
            for one in of_b.into_iter().chain(of_c) {
                answers.push(answer(one).await?);
            }
        }
    }
    pause.resume().await;
    for one in sent {
        answers.push(answer(one).await?);
    }
    for told in &answers {
        must(told.status == 200, || format!("told {told:?}"))?;
    }
    let found = look(b, &load_namespace("db.in")).await?;
    let found = found["properties"].as_object().expect("properties");
    must(found.len() == servers.len() * CLIENTS, || {
        format!(
            "lost: only {:?} are there",
            found.keys().collect::<Vec<_>>()
        )
    })
}
