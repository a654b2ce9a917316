//! The start page: what this is, and how to connect.

use axum::response::Html;
use http::HeaderMap;
use http::header::HOST;

const TEMPLATE: &str = include_str!("page.html");
const NO_HOST: &str = "127.0.0.1:8181";

/// The page, with the address under which it was asked for.
pub(crate) async fn start_page(headers: HeaderMap) -> Html<String> {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let is_plain = |host: &&str| {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b".:-[]".contains(&byte);
        !host.is_empty() && host.bytes().all(allowed)
    };
    let host = host.filter(is_plain).unwrap_or(NO_HOST);
    let page = TEMPLATE
        .replace("{{host}}", host)
        .replace("{{version}}", env!("CARGO_PKG_VERSION"));
    Html(page)
}
