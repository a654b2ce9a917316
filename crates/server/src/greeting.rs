//! What a newcomer needs, printed when the server listens.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The first line says where the server listens; the rest is for copying.
/// `lake` is where the first catalog lies, if it is still there.
pub fn greeting(listening: SocketAddr, lake: Option<&str>, store: &str) -> String {
    let here = reachable(listening);
    let warehouse = lake.unwrap_or("renamed or dropped; see `anabranch catalog list`");
    format!(
        "anabranch listening on http://{listening}

  store      {store}
  lake       {warehouse}
  Iceberg    http://{here}/iceberg
  catalogs   http://{here}/v1/catalogs
  changes    http://{here}/v1/changes
  start page http://{here}/

DuckDB:
  INSTALL iceberg; LOAD iceberg;
  ATTACH 'lake' AS lake (
      TYPE ICEBERG, ENDPOINT 'http://{here}/iceberg', AUTHORIZATION_TYPE 'none'
  );

PyIceberg:
  from pyiceberg.catalog import load_catalog
  lake = load_catalog(
      \"lake\", type=\"rest\", uri=\"http://{here}/iceberg\", warehouse=\"lake\"
  )
"
    )
}

/// An address that a client on this machine can use.
fn reachable(listening: SocketAddr) -> SocketAddr {
    let ip = match listening.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, listening.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_names_the_real_address_and_the_snippets_one_that_works() {
        let text = greeting(([0, 0, 0, 0], 8181).into(), Some("file:///w"), "sqlite:x");
        let first = text.lines().next();
        assert_eq!(first, Some("anabranch listening on http://0.0.0.0:8181"));
        assert!(text.contains("ENDPOINT 'http://127.0.0.1:8181/iceberg'"));
    }
}
