//! What links are made of, from the configuration.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use longmen_core::config::Secret;
use longmen_core::upstream::TlsConnector;

use super::{Identity, LinkOptions, Login, PollOptions};
use crate::config::GatewayConfig;

impl LinkOptions {
    /// The websocket's; `port` is the one served on, `sessions` are counted for the metrics.
    pub(crate) fn new(
        config: &GatewayConfig,
        port: u16,
        sessions: Arc<AtomicUsize>,
        tls: TlsConnector,
    ) -> Self {
        let websocket = &config.sync.websocket;
        Self {
            identity: Arc::new(Identity::default()),
            urls: websocket.urls.clone(),
            namespace: config.namespace.clone(),
            port,
            origin: websocket.allow_origin.clone(),
            token: config.sync.token.as_ref().map(exposed),
            connect_timeout: websocket.connect_timeout,
            answer_timeout: websocket.answer_timeout,
            ping_interval: websocket.ping_interval,
            reconnect_interval: websocket.reconnect_interval,
            master_check_interval: websocket.master_check_interval,
            max_message_bytes: websocket.max_message_bytes,
            tls,
            sessions,
        }
    }
}

impl PollOptions {
    /// Those of polling, by the same name and counted together with the websocket's.
    pub(crate) fn new(config: &GatewayConfig, links: &LinkOptions) -> Self {
        let http = &config.sync.http;
        let login = http.username.clone().map(|username| Login {
            username,
            password: http.password.as_ref().map(exposed).unwrap_or_default(),
            aes: http.aes.as_ref().map(|(key, iv)| (exposed(key), exposed(iv))),
        });
        Self {
            urls: http.urls.clone(),
            login,
            token: links.token.clone(),
            namespace: links.namespace.clone(),
            identity: Arc::clone(&links.identity),
            port: links.port,
            connect_timeout: http.connect_timeout,
            read_timeout: http.read_timeout,
            reconnect_interval: http.reconnect_interval,
            max_body_bytes: http.max_body_bytes,
            tls: links.tls.clone(),
            sessions: Arc::clone(&links.sessions),
        }
    }
}

fn exposed(secret: &Secret) -> String {
    secret.expose().to_owned()
}
