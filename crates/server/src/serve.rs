//! One server, from start to stop.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use anabranch_catalog::Catalog;
use anabranch_http::{RequestLimits, ServeLimits, Shapes, Stack};
use anabranch_rest_native::{ALWAYS_ADMITTED, LONG_POLLS, Native};
use axum::Router;
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::config::{Config, SettingFlags};
use crate::failure::Failure;
use crate::open::{self, Purpose};
use crate::stop::StopSignals;
use crate::{clock, greeting, jobs, lake, logging, measures, out};

/// What a stopping server adds to the request timeout before it gives running requests up.
const GRACE_MARGIN: Duration = Duration::from_secs(5);
/// Bodies of the largest size that are in memory at the same time; of smaller ones, as many more.
const BODIES_AT_ONCE: usize = 16;

/// Serves until SIGTERM or SIGINT.
pub async fn serve(flags: &SettingFlags) -> Result<ExitCode, Failure> {
    let mut signals = StopSignals::listen()?;
    let config = Config::load(flags)?;
    refuse_exposure(&config)?;
    let listener = listen(&config).await?;
    let listening = local_address(&listener)?;
    let traces = logging::start(&config)?;
    let metrics = measures::start()?;
    let store = open::store(&config, Purpose::Serve).await?;
    clock::check(store.as_ref()).await?;
    let engine = store.engine();
    let catalog = open::catalog(&config, store);
    let lake = lake::find_or_make(&config, &catalog).await?;

    let stopping = CancellationToken::new();
    let server = format!("{}-{}", std::process::id(), Uuid::new_v4().simple());
    let stack = match traces.are_on() {
        true => stack(&config).on_request(logging::join_callers_trace),
        false => stack(&config),
    };
    let routes = routes(&config, &catalog, &metrics, &stopping);
    let router = stack.around(routes);
    let background = [
        tokio::spawn(jobs::run(catalog, server, stopping.clone())),
        tokio::spawn(jobs::keep_metrics(metrics, stopping.clone())),
    ];
    let greeted = out::text(&greeting::greeting(
        listening,
        lake.as_ref().map(|lake| lake.location.as_str()),
        &config.shown_store(),
    ));
    if let Err(failure) = greeted {
        // A server without a reader serves all the same.
        tracing::warn!("{failure}");
    }
    for warning in config.warnings() {
        tracing::warn!("{warning}");
    }
    tracing::info!(%listening, engine, version = env!("CARGO_PKG_VERSION"), "started");

    let limits = ServeLimits {
        connections: config.max_connections,
        grace: config.request_timeout + GRACE_MARGIN,
        ..ServeLimits::default()
    };
    let stop = {
        let stopping = stopping.clone();
        async move { stopping.cancelled().await }
    };
    let mut serving = tokio::spawn(anabranch_http::serve(listener, router, limits, stop));
    let signal = tokio::select! {
        signal = signals.next() => signal,
        _ = &mut serving => return Err(Failure::work("the server ended by itself; see its log")),
    };
    tracing::info!(
        signal,
        "stopping: running requests end, no others are taken"
    );
    stopping.cancel();
    let ended = async {
        let in_time = serving.await.unwrap_or(false)
            && tokio::time::timeout(limits.grace, stack.drained())
                .await
                .is_ok();
        for task in background {
            // It ends by itself, whatever it did last.
            let _ = task.await;
        }
        in_time
    };
    tokio::select! {
        in_time = ended => {
            if !in_time {
                tracing::warn!("some requests did not end in time and are cut off");
            }
        }
        signal = signals.next() => tracing::warn!(signal, "told again: not waiting any longer"),
    }
    traces.flush().await;
    tracing::info!("stopped");
    Ok(ExitCode::SUCCESS)
}

/// While nobody has to log in, only this machine may come in, unless the operator says otherwise.
fn refuse_exposure(config: &Config) -> Result<(), Failure> {
    if config.listen.ip().is_loopback() || config.allow_anonymous_access_from_anywhere {
        return Ok(());
    }
    Err(Failure::setup(format!(
        "the setting `listen` is {}, which other machines reach, and nobody has to log in: listen \
         on 127.0.0.1 behind a proxy that authenticates, or accept the risk with \
         --allow-anonymous-access-from-anywhere",
        config.listen
    )))
}

async fn listen(config: &Config) -> Result<TcpListener, Failure> {
    let address = config.listen;
    TcpListener::bind(address).await.map_err(|error| {
        Failure::setup(format!(
            "can't listen on {address}: {error}; stop what uses the port, or choose another with \
             --listen"
        ))
    })
}

fn local_address(listener: &TcpListener) -> Result<SocketAddr, Failure> {
    let failed = |error| Failure::setup(format!("the listening address is unknown: {error}"));
    listener.local_addr().map_err(failed)
}

fn stack(config: &Config) -> Stack {
    let limits = RequestLimits {
        timeout: config.request_timeout,
        body_bytes: config.body_limit,
        bodies_bytes: config.body_limit.saturating_mul(BODIES_AT_ONCE),
        in_flight: config.max_requests,
        long_polls: config.max_followers,
    };
    let shapes = Shapes::new(anabranch_rest_native::error_shape)
        .under(anabranch_rest_iceberg::BASE, anabranch_rest_iceberg::Errors)
        .under(anabranch_rest_paimon::BASE, anabranch_rest_paimon::Errors);
    Stack::new(shapes, limits)
        .always_admit(ALWAYS_ADMITTED)
        .long_poll(LONG_POLLS)
}

fn routes(
    config: &Config,
    catalog: &Catalog,
    metrics: &PrometheusHandle,
    stopping: &CancellationToken,
) -> Router {
    let iceberg = anabranch_rest_iceberg::Settings {
        default_warehouse: lake::NAME.to_owned(),
        idempotency_key_lifetime: config.idempotency_lifetime,
    };
    let native = Native {
        catalog: catalog.clone(),
        metrics: metrics.clone(),
        catalogs_location: config.catalogs_location.clone(),
        iceberg_endpoints: anabranch_rest_iceberg::endpoints(),
        described: vec![anabranch_rest_paimon::describe()],
        stopping: stopping.clone(),
    };
    let paimon = anabranch_rest_paimon::router(catalog.clone(), lake::NAME);
    anabranch_rest_native::router(native)
        .nest(
            anabranch_rest_iceberg::BASE,
            anabranch_rest_iceberg::router(catalog.clone(), iceberg),
        )
        .merge(paimon)
}
