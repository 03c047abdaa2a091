//! The running Postroom: what is opened, what runs in the background, and how it stops.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use anyhow::Context as _;
use axum::serve::ListenerExt as _;
use tokio::net::TcpListener;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    app::App,
    background,
    config::{self, Config},
    database::{self, Pools},
    metrics::Metrics,
    outside::docker::{Engine, Limits},
    queue::{self, Channel, Queue},
    retention::Retention,
    router,
    sending::{Sending, relays, sandbox},
    telemetry,
};

/// Everything opened, nothing running yet.
pub struct House {
    pub app: App,
    pub sending: Sending,
    pub retention: Retention,
    /// What the sending spawned: it writes for requests and workers, and ends after them.
    tasks: TaskTracker,
    pools: Pools,
    sandbox: Option<TcpListener>,
}

impl House {
    /// For who must see every connection closed in the end.
    pub fn pools(&self) -> Pools {
        self.pools.clone()
    }

    /// Where the mail sandbox takes mail, when there is one.
    pub fn sandbox_address(&self) -> Option<SocketAddr> {
        self.sandbox.as_ref().and_then(|listener| listener.local_addr().ok())
    }
}

/// The handles of an [`App`], with nothing asked of the database.
pub fn app(config: Config, pools: &Pools) -> App {
    let (lease, poll) = (config.queue.lease, config.queue.poll);
    let metrics = Arc::new(Metrics::new());
    let durable_and_relaxed = (pools.workers.clone(), pools.relaxed.clone());
    let told = metrics.clone();
    let claimed = Box::new(move |jobs, took| told.claimed(jobs, took));
    let queue = Queue::new(durable_and_relaxed, lease, poll, claimed);
    let engine = Engine::new(config.docker.place.clone(), Limits::default());
    App {
        secrets: config.secrets.ring.clone(),
        config: Arc::new(config),
        db: pools.api.clone(),
        workers_db: pools.workers.clone(),
        queue: Arc::new(queue),
        metrics,
        engine: Arc::new(engine),
    }
}

/// Opens everything, after bringing the schema up to date if asked to.
pub async fn open(config: Config, migrate: bool) -> anyhow::Result<House> {
    let pools = database::open(&config.database).await?;
    if migrate {
        database::migrate(&pools.workers).await?;
    }
    database::check_secret(&pools.workers, &config.secrets.ring).await?;
    let app = app(config, &pools);
    let sandbox_wanted = app.config.sandbox.enabled;
    if sandbox_wanted {
        relays::ensure_sandbox(&app).await.context("the sandbox's relay cannot be made")?;
    }
    let tasks = TaskTracker::new();
    let sending = Sending::start(&app, &tasks).await.context("the sending cannot be started")?;
    let sandbox = if sandbox_wanted {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        sending.relays.set_sandbox_port(listener.local_addr()?.port());
        // Before the first request: until it is read with its port, nothing may go there.
        sending.relays.refresh().await;
        Some(listener)
    } else {
        None
    };
    let retention = Retention::new(app.clone(), background::classes(&app.config));
    Ok(House { app, sending, retention, tasks, pools, sandbox })
}

/// Serves until told to stop; then takes nothing new, and waits for what is under way as long as
/// the settings say. Whatever is cut off is safe: its lease runs out.
pub async fn run(
    house: House,
    listener: TcpListener,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    // However this ends, everything ends.
    let _stop = stop.clone().drop_guard();
    let House { app, sending, retention, tasks: writers, pools, sandbox } = house;
    let engine = app.engine.clone();
    let tasks = TaskTracker::new();
    let patience = app.config.stop.patience;
    if let Some(listener) = sandbox {
        let db = app.workers_db.clone();
        tasks.spawn(sandbox::listen(db, listener, tasks.clone(), stop.clone()));
    }
    let heard = {
        let (bell, relays) = (app.queue.bell.clone(), sending.relays.clone());
        move |channel: Channel| match channel {
            Channel::Jobs => bell.ring_here(),
            Channel::Relays => relays.look_again(),
        }
    };
    tasks.spawn(queue::listen(pools.listener, heard, stop.clone()));
    tasks.spawn(app.queue.bell.clone().pass_on(stop.clone()));
    tasks.spawn(sending.clone().keep_fresh(stop.clone()));
    tasks.spawn(sending.relays.clone().keep_tidy(stop.clone()));

    tasks.spawn({
        let (outcomes, stop) = (sending.work.outcomes.clone(), stop.clone());
        async move {
            stop.cancelled().await;
            outcomes.close();
        }
    });

    background::chores(&app, &retention, &tasks, &stop);

    let kept_until = CancellationToken::new();
    let (queue, work) = (app.queue.clone(), sending.work.clone());
    let left = queue.clone();
    let host = config::machine_name();
    tasks.spawn(queue::keep(queue.clone(), work.clone(), host, kept_until.clone()));
    let worker = tasks.spawn({
        let stop = stop.clone();
        async move {
            // Leases are kept until the last step has ended. A worker that fails stops the house.
            let _ended = (kept_until.drop_guard(), stop.clone().drop_guard());
            queue::work(queue, work, stop).await;
        }
    });

    let service = router::router(&app, &sending, &retention)
        .into_make_service_with_connect_info::<SocketAddr>();
    // Small answers must not wait for the acknowledgement of earlier ones.
    let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
    let served = axum::serve(listener, service)
        .with_graceful_shutdown(stop.clone().cancelled_owned())
        .into_future();
    tracing::info!("ready");
    let all = async {
        let (served, worked) = tokio::join!(served, worker);
        worked.context("the worker failed")?;
        sending.relays.close().await;
        served.context("the HTTP server failed")?;
        tasks.close();
        tasks.wait().await;
        // What callers have left behind in a container is being ended.
        engine.settle().await;
        anyhow::Ok(())
    };
    let out_of_patience = async {
        stop.cancelled().await;
        tokio::time::sleep(patience).await;
    };
    tokio::select! {
        ended = all => ended?,
        () = out_of_patience => {
            tracing::warn!("stopping with work under way; others take it over");
            return queue::let_go(&left).await.context("the work under way could not be handed back");
        }
    }
    drop((sending, retention, app));
    writers.close();
    // Nobody waits for what they write any more; this only lets them end in order.
    let _ = tokio::time::timeout(Duration::from_millis(500), writers.wait()).await;
    tracing::info!("stopped");
    // What a collector has not got yet is handed over outside the runtime's own threads.
    let _ = tokio::task::spawn_blocking(telemetry::flush).await;
    Ok(())
}
