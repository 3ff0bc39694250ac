//! One call: read, bind, check the permission, run.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    response::{IntoResponse, Response},
    routing::{MethodFilter, MethodRouter, on},
};
use http::Method;

use super::Handler;
use crate::{
    auth::Caller,
    context::Context,
    error::{ApiError, ApiResult},
    extract::{Bind, Incoming, QueryArgs, path_segment},
    permission::Permission,
    reply::Answer,
    state::AppState,
};

/// The method router of one operation.
pub(super) fn serve<I, A, H>(
    method: Method,
    path: &'static str,
    permission: Permission,
    max_body_bytes: Option<usize>,
    handler: H,
) -> MethodRouter<AppState>
where
    I: Bind + 'static,
    A: Answer + 'static,
    H: Handler<I, A>,
{
    let filter = MethodFilter::try_from(method)
        .unwrap_or_else(|error| panic!("{path} is registered with an odd method: {error}"));
    on(filter, async move |State(state): State<AppState>, request: Request| -> Response {
        let config = &state.config().server;
        let max_body_bytes = max_body_bytes.unwrap_or(config.request_max_bytes);
        let deadline = config.request_timeout;
        let call = Call { state, path, permission, max_body_bytes };
        match tokio::time::timeout(deadline, call.run(request, handler)).await {
            Ok(Ok(answer)) => answer.into_response(),
            Ok(Err(error)) => error.into_response(),
            Err(_) => {
                tracing::warn!(path, ?deadline, "a call took too long and was given up");
                ApiError::Unreadable.into_response()
            }
        }
    })
}

struct Call {
    state: AppState,
    path: &'static str,
    permission: Permission,
    max_body_bytes: usize,
}

impl Call {
    async fn run<I, A, H>(self, request: Request, handler: H) -> ApiResult<A>
    where
        I: Bind,
        H: Handler<I, A>,
    {
        let (parts, body) = request.into_parts();
        let body = axum::body::to_bytes(body, self.max_body_bytes)
            .await
            .map_err(|error| self.unreadable(&error))?;
        let caller = parts.extensions.get::<Arc<Caller>>().cloned();
        let peer = parts.extensions.get::<crate::serve::Peer>().copied();
        let incoming = Incoming {
            state: self.state,
            path: path_parameters(self.path, parts.uri.path()),
            query: QueryArgs::parse(parts.uri.query().unwrap_or_default().as_bytes()),
            headers: parts.headers,
            body,
        };
        incoming.refuse_nul()?;
        let input = I::bind(&incoming).await?;
        let context = Context::new(incoming.state, caller, incoming.headers, peer);
        context.require(self.permission).await?;
        handler.handle(context, input).await
    }

    /// A body past the limit is told; one that broke off has nobody left to tell.
    fn unreadable(&self, error: &axum::Error) -> ApiError {
        tracing::debug!(path = self.path, %error, "a request body could not be read");
        let past_limit = std::error::Error::source(error)
            .is_some_and(|source| source.is::<http_body_util::LengthLimitError>());
        if past_limit {
            let limit = self.max_body_bytes;
            return ApiError::refused(format!("request body is larger than {limit} bytes"));
        }
        ApiError::Unreadable
    }
}

/// The values of the parameters in `pattern`, from the segments of `path` at their places.
fn path_parameters(pattern: &'static str, path: &str) -> Vec<(&'static str, String)> {
    pattern
        .split('/')
        .zip(path.split('/'))
        .filter_map(|(pattern, segment)| {
            let name = pattern.strip_prefix('{')?.strip_suffix('}')?;
            Some((name, path_segment(segment)))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::path_parameters;

    #[test]
    fn parameters_are_found_by_place_and_decoded() {
        assert_eq!(
            path_parameters("/a/{x}/b/{y}", "/a/1%202/b/%E4%BD%A0"),
            [("x", "1 2".to_owned()), ("y", "你".to_owned())]
        );
        assert_eq!(path_parameters("/a/{x}", "/a/"), [("x", String::new())]);
    }
}
