//! What is left of a request body after its request was answered.

use std::time::Duration;

use http_body::Body as _;
use http_body_util::BodyExt;
use tokio::runtime::Handle;
use tokio::time::{Instant, timeout_at};

use super::Body;

/// How long what is left is read for.
const LONGEST: Duration = Duration::from_secs(5);

/// Reads what is left of a refused request's body and throws it away, for at most five seconds, on
/// the runtime of the caller.
///
/// Closing a socket with unread bytes resets the connection, and the client loses the refusal that it
/// was sent. While the body is read the server keeps the connection open behind the answer.
pub fn drain(mut body: Body) {
    if body.is_end_stream() {
        return;
    }
    // Without a runtime there is no connection either.
    let Ok(runtime) = Handle::try_current() else { return };
    runtime.spawn(async move {
        let end = Instant::now() + LONGEST;
        while let Ok(Some(Ok(_))) = timeout_at(end, body.frame()).await {}
    });
}
