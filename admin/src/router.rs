//! The table of routes: each with its permission, its input, and its place in the API document.
//!
//! A route cannot be registered without saying who may call it, and the check is made here, in one
//! place, between binding the request and running the handler:
//! token → binding and field rules → permission → the handler with its parameter rules.
//! A body is read only where the handler's input takes one, and of a caller without the permission
//! only as much as it takes to tell what is wrong with it.
//!
//! ```no_run
//! use longmen_admin::context::Context;
//! use longmen_admin::error::ApiResult;
//! use longmen_admin::extract::Ids;
//! use longmen_admin::permission::Permission::{AnyOf, Authenticated};
//! use longmen_admin::reply::Reply;
//! use longmen_admin::router::Routes;
//!
//! async fn list(context: Context, (): ()) -> ApiResult<Reply<Vec<String>>> {
//!     Ok(Reply::data(vec![context.caller()?.name.clone()]))
//! }
//!
//! async fn delete(_context: Context, ids: Ids) -> ApiResult<Reply<usize>> {
//!     Ok(Reply::new("delete success", ids.checked("deleteThings")?.len()))
//! }
//!
//! pub fn routes() -> Routes {
//!     Routes::new("thing")
//!         .get("/thing/list", AnyOf(&["system:thing:list"]), "Lists things", list)
//!         .delete("/thing/batch", Authenticated, "Deletes things", delete)
//! }
//! ```
//!
//! Source: ShenYu 2.7.1 admin, order of checks and texts as executed.

mod body;
mod build;
mod call;

use std::future::Future;

use axum::routing::MethodRouter;
use http::Method;

use crate::{
    context::Context,
    error::ApiResult,
    extract::{Bind, InputDoc},
    permission::Permission,
    reply::{Answer, Described},
    state::AppState,
};

pub use body::BodyBudget;
pub use build::RouteTable;

use call::Terms;

/// The routes of one resource, or of all of them together.
#[derive(Debug, Default)]
pub struct Routes {
    tag: &'static str,
    routes: Vec<Route>,
}

/// One registered operation.
pub struct Route {
    /// The method.
    pub method: Method,
    /// The path, parameters in braces.
    pub path: &'static str,
    /// Who may call it.
    pub permission: Permission,
    /// What it does, as a sentence for the API document.
    pub summary: &'static str,
    /// The resource it belongs to.
    pub tag: &'static str,
    /// What it takes.
    pub input: InputDoc,
    /// What it answers.
    pub output: Described,
    /// What serves it, given the path's segments by which parameters are found.
    serve: MethodRouter<AppState>,
}

impl std::fmt::Debug for Route {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Route")
            .field("method", &self.method)
            .field("path", &self.path)
            .field("permission", &self.permission)
            .finish_non_exhaustive()
    }
}

/// What serves a route: an async function of the call's [`Context`] and its bound input.
pub trait Handler<I, A>: Clone + Send + Sync + 'static {
    /// Serves one call.
    fn handle(&self, context: Context, input: I) -> impl Future<Output = ApiResult<A>> + Send;
}

impl<F, Fut, I, A> Handler<I, A> for F
where
    F: Fn(Context, I) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = ApiResult<A>> + Send,
    I: Bind,
    A: Answer,
{
    fn handle(&self, context: Context, input: I) -> impl Future<Output = ApiResult<A>> + Send {
        self(context, input)
    }
}

macro_rules! methods {
    ($($(#[$doc:meta])* $name:ident $method:ident;)+) => {$(
        $(#[$doc])*
        #[must_use]
        pub fn $name<I, A, H>(
            self,
            path: &'static str,
            permission: Permission,
            summary: &'static str,
            handler: H,
        ) -> Self
        where
            I: Bind + 'static,
            A: Answer + 'static,
            H: Handler<I, A>,
        {
            self.route(Method::$method, path, permission, summary, None, handler)
        }
    )+};
}

impl Routes {
    /// No routes yet, of the resource `tag`.
    #[must_use]
    pub fn new(tag: &'static str) -> Self {
        Self { tag, routes: Vec::new() }
    }

    methods! {
        /// Registers a `GET`.
        get GET;
        /// Registers a `POST`.
        post POST;
        /// Registers a `PUT`.
        put PUT;
        /// Registers a `DELETE`.
        delete DELETE;
    }

    /// Registers an operation; `max_body_bytes` is its own limit in place of the configured one.
    #[must_use]
    pub fn route<I, A, H>(
        mut self,
        method: Method,
        path: &'static str,
        permission: Permission,
        summary: &'static str,
        max_body_bytes: Option<usize>,
        handler: H,
    ) -> Self
    where
        I: Bind + 'static,
        A: Answer + 'static,
        H: Handler<I, A>,
    {
        let mut input = InputDoc::default();
        I::describe(&mut input);
        let takes_body = input.body.is_some();
        let terms = Terms { path, permission, takes_body, max_body_bytes };
        let serve = call::serve(method.clone(), terms, handler);
        let tag = self.tag;
        let output = A::describe();
        self.routes.push(Route { method, path, permission, summary, tag, input, output, serve });
        self
    }

    /// Registers what takes the connection over or streams, and so reads the request itself, like
    /// the websocket. Public or with a guard of its own: the permission is not checked for it.
    #[must_use]
    pub fn raw(
        mut self,
        method: Method,
        path: &'static str,
        permission: Permission,
        summary: &'static str,
        serve: MethodRouter<AppState>,
    ) -> Self {
        assert!(
            matches!(permission, Permission::Public | Permission::Own(_)),
            "{method} {path} is raw and must be public or name its own guard, not {permission:?}"
        );
        let tag = self.tag;
        let input = InputDoc::default();
        let output = axum::response::Response::describe();
        self.routes.push(Route { method, path, permission, summary, tag, input, output, serve });
        self
    }

    /// These routes, then those of `other`.
    #[must_use]
    pub fn merge(mut self, other: Self) -> Self {
        self.routes.extend(other.routes);
        self
    }

    /// All of them, in the order of registration.
    #[must_use]
    pub fn all(&self) -> &[Route] {
        &self.routes
    }
}
