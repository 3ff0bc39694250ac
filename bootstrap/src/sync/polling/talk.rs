//! What a link says to its admin: log-ins, questions, fetches.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use longmen_core::sync::{
    Group, NEGOTIATION_HEADER, NEGOTIATION_VERSION, POLL_INFO_HEADER, POLL_PORT_HEADER,
    TOKEN_HEADER,
};
use tokio::task::spawn_blocking;
use tokio::time::Instant;
use tracing::debug;

use super::super::report;
use super::answer::{self, AnswerError, Groups, Stand};
use super::client::{Answer, Client, ClientError, Limits, escaped};
use super::{Login, PollOptions, aes};

/// How long an admin may take for what it need not hold.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long an admin may take to show that it is there.
const LOOK: Duration = Duration::from_secs(5);

/// How long a token lives whose admin does not say.
const USUAL_LIFE_MS: f64 = 86_400_000.0;

/// From this size on an answer is read on a thread of its own.
const LARGE_BYTES: usize = 256 * 1024;

/// The header of a log-in's token.
const ACCESS_TOKEN: HeaderName = HeaderName::from_static("x-access-token");

/// Why there is no answer, or none of use.
#[derive(Debug, thiserror::Error)]
pub(super) enum TalkError {
    #[error("{0}")]
    Client(#[from] ClientError),
    #[error("{0}")]
    Answer(#[from] AnswerError),
    #[error("log-in as {0:?}: {1}")]
    Login(String, #[source] AnswerError),
    #[error("{0} cannot be sent in a header")]
    Setting(&'static str),
    #[error("an answer could not be read to its end")]
    Reader,
}

/// A talk with one admin.
pub(super) struct Talk {
    options: Arc<PollOptions>,
    client: Client,
    headers: HeaderMap,
    /// The token of the last log-in, and when it is time for the next.
    token: Option<(HeaderValue, Instant)>,
}

impl Talk {
    /// A talk with the admin at `url`; nothing is sent yet.
    ///
    /// # Errors
    /// The url, or a setting that goes into a header, cannot be.
    pub(super) fn new(url: &str, options: &Arc<PollOptions>) -> Result<Self, TalkError> {
        let limits = Limits {
            connect: options.connect_timeout,
            idle: PATIENCE.min(options.read_timeout),
            body_bytes: options.max_body_bytes,
        };
        let mut headers = HeaderMap::new();
        let mut add = |name: &'static str, value: &str, setting| {
            let value = HeaderValue::from_str(value).map_err(|_| TalkError::Setting(setting))?;
            headers.insert(HeaderName::from_static(name), value);
            Ok::<_, TalkError>(())
        };
        add(NEGOTIATION_HEADER, NEGOTIATION_VERSION, "the version")?;
        add(POLL_PORT_HEADER, &options.port.to_string(), "the port")?;
        add(POLL_INFO_HEADER, &report::info(), "the report")?;
        if let Some(token) = options.token.as_ref().filter(|_| options.login.is_none()) {
            add(TOKEN_HEADER, token, "shenyu.sync.token")?;
        }
        let client = Client::new(url, limits, options.tls.clone(), Arc::clone(&options.identity))?;
        Ok(Self { options: Arc::clone(options), client, headers, token: None })
    }

    /// Fetches groups.
    ///
    /// # Errors
    /// There is no answer of use.
    pub(super) async fn fetch(
        &mut self,
        groups: &[Group],
    ) -> Result<(Groups, Option<Stand>), TalkError> {
        let mut target = "/configs/fetch?".to_owned();
        for group in groups {
            let _ = write!(target, "groupKeys={}&", group.name());
        }
        let _ = write!(target, "namespaceId={}", escaped(&self.options.namespace));
        self.call(&Method::GET, &target, PATIENCE, answer::groups).await
    }

    /// Looks whether the admin is there, by asking for the group that is most often empty.
    ///
    /// # Errors
    /// There is no answer of use.
    pub(super) async fn look(&mut self) -> Result<(), TalkError> {
        let namespace = escaped(&self.options.namespace);
        let group = Group::AiProxyApiKey.name();
        let target = format!("/configs/fetch?groupKeys={group}&namespaceId={namespace}");
        self.call(&Method::GET, &target, LOOK, answer::groups).await?;
        Ok(())
    }

    /// Asks which groups differ from what `known` says, the parameters of a question; the admin may
    /// hold the answer.
    ///
    /// # Errors
    /// There is no answer of use.
    pub(super) async fn ask(
        &mut self,
        known: &str,
    ) -> Result<(Vec<Group>, Option<Stand>), TalkError> {
        let namespace = escaped(&self.options.namespace);
        let target = format!("/configs/listener?{known}&namespaceId={namespace}");
        let patience = self.options.read_timeout;
        self.call(&Method::POST, &target, patience, answer::changed).await
    }

    /// Sends a request with a token. One that the admin does not take is replaced once.
    async fn call<T: Send + 'static>(
        &mut self,
        method: &Method,
        target: &str,
        patience: Duration,
        read: fn(&Answer) -> Result<T, AnswerError>,
    ) -> Result<T, TalkError> {
        let fresh = self.log_in().await?;
        match self.once(method, target, patience, read).await {
            Err(TalkError::Answer(AnswerError::Token)) if self.token.is_some() && !fresh => {
                debug!("the admin does not take the token any more");
                self.token = None;
                self.log_in().await?;
                self.once(method, target, patience, read).await
            }
            answered => answered,
        }
    }

    async fn once<T: Send + 'static>(
        &mut self,
        method: &Method,
        target: &str,
        patience: Duration,
        read: fn(&Answer) -> Result<T, AnswerError>,
    ) -> Result<T, TalkError> {
        let mut headers = self.headers.clone();
        if let Some((token, _)) = &self.token {
            headers.insert(ACCESS_TOKEN, token.clone());
        }
        if method == Method::POST {
            let form = HeaderValue::from_static("application/x-www-form-urlencoded");
            headers.insert(header::CONTENT_TYPE, form);
            headers.insert(header::CONTENT_LENGTH, HeaderValue::from_static("0"));
        } else {
            // Only questions tell about the machine, as the reference's.
            headers.remove(POLL_PORT_HEADER);
            headers.remove(POLL_INFO_HEADER);
        }
        let answer = self.client.send(method, target, &headers, patience).await?;
        if answer.body.len() < LARGE_BYTES {
            return Ok(read(&answer)?);
        }
        // The runtime goes on with everything else meanwhile.
        let read = spawn_blocking(move || read(&answer)).await;
        Ok(read.map_err(|_| TalkError::Reader)??)
    }

    /// Logs in if it is time for that; whether it did.
    ///
    /// The target holds the password: it is told nowhere.
    ///
    /// # Errors
    /// There is no token.
    pub(super) async fn log_in(&mut self) -> Result<bool, TalkError> {
        let options = Arc::clone(&self.options);
        let Some(Login { username, password, aes }) = &options.login else { return Ok(false) };
        if self.token.as_ref().is_some_and(|(_, renewal)| Instant::now() < *renewal) {
            return Ok(false);
        }
        let sent = match aes {
            // Checked when the settings were read.
            Some((key, iv)) => aes::encrypted(password, key, iv)
                .map_err(|_| TalkError::Setting("shenyu.sync.http.password"))?,
            None => password.clone(),
        };
        let (user, sent) = (escaped(username), escaped(&sent));
        let target = format!("/platform/login?userName={user}&password={sent}");
        let answer = self.client.send(&Method::GET, &target, &HeaderMap::new(), PATIENCE).await?;
        let token = answer::token(&answer).map_err(|e| TalkError::Login(username.clone(), e))?;
        let mut value = HeaderValue::from_str(&token.token)
            .map_err(|_| TalkError::Setting("the token of the log-in"))?;
        value.set_sensitive(true);
        self.token = Some((value, Instant::now() + renewal(token.expired_time)));
        Ok(true)
    }
}

/// When to log in again: at nine tenths of the token's life, as the reference does.
fn renewal(life_ms: Option<f64>) -> Duration {
    let life_ms = life_ms.filter(|ms| *ms > 0.0 && ms.is_finite()).unwrap_or(USUAL_LIFE_MS);
    let seconds = (life_ms * 0.9 / 1000.0).clamp(1.0, 366.0 * 86_400.0);
    Duration::from_secs_f64(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_renewed_before_they_end() {
        assert_eq!(renewal(Some(86_400_000.0)), Duration::from_secs(77_760));
        assert_eq!(renewal(None), Duration::from_secs(77_760));
        for odd in [0.0, -5.0, f64::NAN, f64::INFINITY] {
            assert_eq!(renewal(Some(odd)), Duration::from_secs(77_760), "{odd}");
        }
        assert_eq!(renewal(Some(10.0)), Duration::from_secs(1));
    }
}
