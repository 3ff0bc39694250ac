//! What a handler knows of the call it serves.

use std::sync::Arc;

use http::HeaderMap;
use longmen_db::{Actor, ReadTx, Source, UnitOfWork};

use crate::{
    auth::Caller,
    error::{ApiError, ApiResult},
    permission::{Permission, SUPER_USER},
    serve::Peer,
    state::AppState,
};

/// One call: the shared parts of the service, and who calls.
#[derive(Debug, Clone)]
pub struct Context {
    state: AppState,
    caller: Option<Arc<Caller>>,
    headers: HeaderMap,
    peer: Option<Peer>,
}

impl Context {
    pub(crate) const fn new(
        state: AppState,
        caller: Option<Arc<Caller>>,
        headers: HeaderMap,
        peer: Option<Peer>,
    ) -> Self {
        Self { state, caller, headers, peer }
    }

    /// The shared parts of the service.
    #[must_use]
    pub const fn state(&self) -> &AppState {
        &self.state
    }

    /// The headers of the call.
    #[must_use]
    pub const fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// The address the call came from.
    #[must_use]
    pub const fn peer(&self) -> Option<Peer> {
        self.peer
    }

    /// Who calls.
    ///
    /// # Errors
    /// [`ApiError::Token`] on routes that ask for no token.
    pub fn caller(&self) -> ApiResult<&Caller> {
        self.caller.as_deref().ok_or(ApiError::Token)
    }

    /// A consistent view of the store.
    ///
    /// # Errors
    /// Failures of the store.
    pub async fn read(&self) -> ApiResult<ReadTx> {
        Ok(self.state.store().read().await?)
    }

    /// A unit of work on behalf of the caller. End it by its `commit`.
    ///
    /// # Errors
    /// Failures of the store; [`ApiError::Token`] on routes that ask for no token.
    pub async fn begin(&self) -> ApiResult<UnitOfWork> {
        let caller = self.caller()?;
        // Consoles name themselves at the log-in; clients of the API do not.
        let source = match caller.client_id {
            Some(_) => Source::Console,
            None => Source::Api,
        };
        self.begin_as(caller.name.clone(), source).await
    }

    /// A unit of work on behalf of a service that registers itself under this name. End it by its
    /// `commit`.
    ///
    /// # Errors
    /// As [`Context::begin`].
    pub async fn begin_for_client(&self, client: &str) -> ApiResult<UnitOfWork> {
        let user = &self.caller()?.name;
        let name = match client.trim() {
            "" => user.clone(),
            client => format!("{user} ({client})"),
        };
        self.begin_as(name, Source::Sdk).await
    }

    async fn begin_as(&self, name: String, source: Source) -> ApiResult<UnitOfWork> {
        let address = self.peer.map(|peer| peer.0.ip().to_string()).unwrap_or_default();
        Ok(self.state.store().begin(Actor { name, source, address }).await?)
    }

    /// Checks that the caller may do this.
    ///
    /// # Errors
    /// [`ApiError::Permission`], the texts of the super user's password guard, or a failure of the
    /// store.
    pub async fn require(&self, permission: Permission) -> ApiResult<()> {
        let Permission::AnyOf(wanted) = permission else { return Ok(()) };
        let Some(caller) = self.caller.as_deref() else { return Err(ApiError::Permission) };
        if caller.name == SUPER_USER {
            return crate::auth::guard_super_user(&self.state, caller, wanted).await;
        }
        if caller.granted(&self.state).await?.any_of(wanted) {
            return Ok(());
        }
        Err(ApiError::Permission)
    }
}
