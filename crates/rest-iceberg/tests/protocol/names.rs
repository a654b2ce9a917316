//! Names with everything that clients encode differently.

use anabranch_http::encode_name;
use serde_json::json;

use crate::server::{Server, append, schema};

#[tokio::test]
async fn odd_names_are_the_same_in_paths_and_bodies() {
    let server = Server::start().await;
    for name in ["a b", "a+b", "100%", "a%20b", "v1.0", "a$b", "🦆", "x/y"] {
        let namespace = encode_name(name);
        server.namespace(&[name]).await;
        let tables = format!("/v1/lake/namespaces/{namespace}/tables");
        let body = json!({"name": name, "schema": schema()});
        let table = server.post(&tables, body).await.expect(200).json();
        let path = format!("{tables}/{namespace}");
        assert_eq!(server.get(&path).await.expect(200).json(), table);
        let listed = server.get(&tables).await.expect(200).json();
        let identifier = json!({"namespace": [name], "name": name});
        assert_eq!(listed["identifiers"], json!([identifier]));

        let mut commit = append(&table, 7, None, 1);
        commit["identifier"] = identifier.clone();
        server.post(&path, commit).await.expect(200);
        let to = json!({"namespace": [name], "name": format!("{name} 2")});
        let rename = json!({"source": identifier, "destination": to});
        server
            .post("/v1/lake/tables/rename", rename)
            .await
            .expect(204);
        let path = format!("{path}%202");
        server.head(&path).await.expect(204);
        server.delete(&path).await.expect(204);
        server
            .delete(&format!("/v1/lake/namespaces/{namespace}"))
            .await
            .expect(204);
    }
    server.audited().await;
}

#[tokio::test]
async fn a_space_may_be_written_as_plus() {
    let server = Server::start().await;
    server.namespace(&["a b"]).await;
    server.get("/v1/lake/namespaces/a+b").await.expect(200);
    server.get("/v1/lake/namespaces/a%20b").await.expect(200);
    server.get("/v1/lake/namespaces/a%2Bb").await.expect(404);
    server.audited().await;
}
