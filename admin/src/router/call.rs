//! One call: the permission, the body, what is bound of both, and the handler.

use std::sync::Arc;

use axum::{
    body::Body,
    extract::{Request, State},
    response::{IntoResponse, Response},
    routing::{MethodFilter, MethodRouter, on},
};
use http::Method;

use super::{
    Handler,
    body::{BodyFault, HeldBody},
};
use crate::{
    auth::Caller,
    context::Context,
    error::{ApiError, ApiResult},
    extract::{Bind, Incoming, QueryArgs, path_segment},
    permission::Permission,
    reply::Answer,
    state::AppState,
    v1::{Fault, Told},
};

/// The largest body that is read of a caller who may not make the call. It is read only to tell
/// what is wrong with it, which the reference tells before it asks for the permission.
const UNPERMITTED_BYTES: usize = 64 * 1024;

/// What of a route decides how its calls go.
#[derive(Debug, Clone, Copy)]
pub(super) struct Terms {
    /// Path with its parameters in braces.
    pub(super) path: &'static str,
    /// Who may call.
    pub(super) permission: Permission,
    /// Whether the input has a part that is in the body; otherwise no body is read.
    pub(super) takes_body: bool,
    /// The largest body, in place of the configured one.
    pub(super) max_body_bytes: Option<usize>,
}

/// The method router of one operation.
pub(super) fn serve<I, A, H>(method: Method, terms: Terms, handler: H) -> MethodRouter<AppState>
where
    I: Bind + 'static,
    A: Answer + 'static,
    H: Handler<I, A>,
{
    let path = terms.path;
    let filter = MethodFilter::try_from(method)
        .unwrap_or_else(|error| panic!("{path} is registered with an odd method: {error}"));
    on(filter, async move |State(state): State<AppState>, request: Request| -> Response {
        let deadline = state.config().server.request_timeout;
        let call = Call { state, terms };
        match tokio::time::timeout(deadline, call.run(request, handler)).await {
            Ok(Ok(answer)) => answer.into_response(),
            Ok(Err(error)) => error.into_response(),
            Err(_) => {
                tracing::warn!(path, ?deadline, "a call took too long and was given up");
                let told = Told {
                    fault: Fault::Internal,
                    message: "the call took too long and was given up".to_owned(),
                };
                let mut response = ApiError::Unreadable.into_response();
                response.extensions_mut().insert(told);
                response
            }
        }
    })
}

struct Call {
    state: AppState,
    terms: Terms,
}

impl Call {
    async fn run<I, A, H>(self, request: Request, handler: H) -> ApiResult<A>
    where
        I: Bind,
        A: Answer,
        H: Handler<I, A>,
    {
        let (parts, body) = request.into_parts();
        let caller = parts.extensions.get::<Arc<Caller>>().cloned();
        let peer = parts.extensions.get::<crate::serve::Peer>().copied();
        let context = Context::new(self.state.clone(), caller, parts.headers.clone(), peer);
        let denied = match context.require(self.terms.permission).await {
            Err(error @ ApiError::Internal(_)) => return Err(error),
            permitted => permitted.err(),
        };
        // Held until the answer is there: what is made of a body is as large as the body.
        let HeldBody { bytes, share: _share } = match self.read(body, denied.is_none()).await {
            Ok(body) => body,
            Err(fault) => {
                return Err(match (fault, denied) {
                    (BodyFault::TooLarge(_), Some(denied)) => denied,
                    (fault, _) => self.unreadable(&fault),
                });
            }
        };
        let incoming = Incoming {
            state: self.state,
            path: path_parameters(self.terms.path, parts.uri.path()),
            query: QueryArgs::parse(parts.uri.query().unwrap_or_default().as_bytes()),
            headers: parts.headers,
            body: bytes,
        };
        incoming.refuse_nul()?;
        let input = I::bind(&incoming).await?;
        if let Some(denied) = denied {
            return Err(denied);
        }
        let answer = handler.handle(context.clone(), input).await;
        let Some(error) = answer.as_ref().err().filter(|e| e.may_be_tried_again(&parts.method))
        else {
            return answer;
        };
        tracing::debug!(path = self.terms.path, ?error, "a call is made once more");
        drop(answer);
        let input = I::bind(&incoming).await?;
        handler.handle(context, input).await
    }

    async fn read(&self, body: Body, permitted: bool) -> Result<HeldBody, BodyFault> {
        if !self.terms.takes_body {
            return Ok(HeldBody::default());
        }
        let most = self.terms.max_body_bytes;
        let most = most.unwrap_or_else(|| self.state.config().server.request_max_bytes);
        // Without a token to show, whoever calls may be anybody.
        let known = !matches!(self.terms.permission, Permission::Public | Permission::Own(_));
        let limit = if permitted && known { most } else { most.min(UNPERMITTED_BYTES) };
        self.state.bodies().read(body, limit).await
    }

    /// A body past a limit is told; one that broke off has nobody left to tell.
    fn unreadable(&self, fault: &BodyFault) -> ApiError {
        tracing::debug!(path = self.terms.path, %fault, "a request body was not read");
        match fault {
            BodyFault::TooLarge(_) | BodyFault::Crowded(_) => ApiError::refused(fault.to_string()),
            BodyFault::Broken(_) => ApiError::Unreadable,
        }
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
