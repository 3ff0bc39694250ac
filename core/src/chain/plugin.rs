//! The trait of plugins and the values its hooks exchange.

use std::any::Any;
use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Response, response};

use super::{BodyFilter, CatalogueEntry, Completion, Handle, HandleFault, Notes, RequestContext};
use crate::body::Body;
use crate::error::{GatewayError, Reason};
use crate::snapshot::{RuleHead, SelectorHead};
use crate::upstream::Endpoint;

/// What a hook decided.
#[derive(Debug)]
pub enum Flow {
    /// Go on.
    Continue,
    /// Answer with this instead.
    Respond(Response<Body>),
}

/// What a hook returns: a decision, or a failure that the error layer turns into an answer.
pub type HookResult = Result<Flow, GatewayError>;

/// A hook's result: there at once (no allocation), or to be awaited.
pub enum Hook<'a, T> {
    /// There.
    Ready(T),
    /// To be awaited; dropped when the client goes away.
    Pending(Pin<Box<dyn Future<Output = T> + Send + 'a>>),
}

impl<'a, T> Hook<'a, T> {
    /// Boxes a future.
    pub fn pending(future: impl Future<Output = T> + Send + 'a) -> Self {
        Self::Pending(Box::pin(future))
    }

    /// Waits for the result.
    pub async fn get(self) -> T {
        match self {
            Self::Ready(value) => value,
            Self::Pending(future) => future.await,
        }
    }
}

impl<T: Debug> Debug for Hook<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ready(value) => f.debug_tuple("Ready").field(value).finish(),
            Self::Pending(_) => f.write_str("Pending"),
        }
    }
}

/// The hooks after the head that a rule takes part in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hooks(u8);

impl Hooks {
    /// None.
    pub const NONE: Self = Self(0);
    /// [`Plugin::around`].
    pub const AROUND: Self = Self(1);
    /// [`Plugin::attempt`].
    pub const ATTEMPT: Self = Self(1 << 1);
    /// [`Plugin::response_head`].
    pub const RESPONSE_HEAD: Self = Self(1 << 2);
    /// [`Plugin::completion`], and state that lives until then.
    pub const COMPLETION: Self = Self(1 << 3);

    /// Both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of `other` are in.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// How much of a body a rule wants to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BodyMode {
    /// Nothing: it streams by.
    #[default]
    Untouched,
    /// The bytes as they flow.
    Filter,
    /// All of it at once, up to a limit in bytes; past it the request is refused (413), an
    /// upstream's answer is a failure (502).
    Whole {
        /// The limit, in bytes.
        limit: u64,
    },
}

/// What a rule compiles to.
#[derive(Debug, Clone, Default)]
pub struct RuleParts {
    /// Its typed settings.
    pub handle: Handle,
    /// The later hooks it takes part in.
    pub hooks: Hooks,
    /// What it wants of the request body.
    pub request_body: BodyMode,
    /// What it wants of the response body.
    pub response_body: BodyMode,
}

impl RuleParts {
    /// Parts with a handle and no later hooks.
    #[must_use]
    pub fn head_only(handle: Handle) -> Self {
        Self { handle, ..Self::default() }
    }

    /// Whether the plugin is needed after the request head.
    #[must_use]
    pub fn later(&self) -> bool {
        self.hooks != Hooks::NONE
            || self.request_body != BodyMode::Untouched
            || self.response_body != BodyMode::Untouched
    }
}

/// What matched, borrowed from the snapshot.
#[derive(Debug, Clone, Copy)]
pub struct HitRef<'a> {
    /// The plugin's compiled config.
    pub config: &'a Handle,
    /// The selector.
    pub selector: &'a Arc<SelectorHead>,
    /// The rule; for a selector with `continued=false` the plugin's default rule.
    pub rule: &'a Arc<RuleHead>,
}

/// What matched, owned, for the hooks after the head. Holds no part of the snapshot but these.
#[derive(Debug)]
pub struct Hit {
    /// The plugin.
    pub plugin: Arc<dyn Plugin>,
    /// Its compiled config.
    pub config: Handle,
    /// The selector.
    pub selector: Arc<SelectorHead>,
    /// The rule.
    pub rule: Arc<RuleHead>,
    /// What the plugin keeps for this request.
    pub state: Option<Box<dyn Any + Send>>,
}

impl Hit {
    /// The state of type `T`, if the plugin kept one.
    #[must_use]
    pub fn state<T: 'static>(&mut self) -> Option<&mut T> {
        self.state.as_deref_mut().and_then(<dyn Any + Send>::downcast_mut)
    }
}

/// What a whole-body hook decided.
#[derive(Debug)]
pub enum BodyFlow {
    /// Go on with this body.
    Continue(Bytes),
    /// Answer with this instead.
    Respond(Response<Body>),
}

/// One attempt on an upstream, ended.
#[derive(Debug)]
pub struct Attempt<'a> {
    /// Counts from 1.
    pub number: u32,
    /// Where it went.
    pub endpoint: &'a Arc<Endpoint>,
    /// From sending to the response head or the failure.
    pub elapsed: Duration,
    /// The status, or why there is none.
    pub outcome: Result<http::StatusCode, Reason>,
}

/// The rest of the call, as the next inner plugin or the client sees it.
pub trait Around: Send {
    /// Calls the upstream with what the context holds now (target, head, body).
    ///
    /// May be called again while [`RequestContext::can_replay`] says so.
    fn call<'a>(
        &'a mut self,
        cx: &'a mut RequestContext,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Body>, GatewayError>> + Send + 'a>>;
}

/// A named step of the chain.
///
/// Everything but the hooks runs at sync time. All hooks have a default that does nothing; a hook is
/// called only for rules whose [`RuleParts`] ask for it. A plugin spawns only through
/// [`RequestContext::spawn`], and holds nothing global: several gateways may live in one process.
pub trait Plugin: Debug + Send + Sync + 'static {
    /// What is known about it before any configuration.
    fn entry(&self) -> &'static CatalogueEntry;

    /// Compiles the plugin's config.
    ///
    /// # Errors
    /// Every fault found; the last good config stays.
    fn compile_config(&self, _config: &str) -> Result<Handle, Vec<HandleFault>> {
        Ok(Handle::none())
    }

    /// Compiles a selector's handle.
    ///
    /// # Errors
    /// Every fault found; the last good selector stays.
    fn compile_selector(&self, _handle: &str) -> Result<Handle, Vec<HandleFault>> {
        Ok(Handle::none())
    }

    /// Compiles a rule's handle.
    ///
    /// # Errors
    /// Every fault found; the last good rule stays.
    fn compile_rule(&self, handle: &str) -> Result<RuleParts, Vec<HandleFault>>;

    /// The rule used where a selector does not go on to its rules.
    fn default_rule(&self) -> RuleParts {
        RuleParts::default()
    }

    /// Whether it looks at this request at all (protocol, mostly). Free of side effects.
    fn applies(&self, _cx: &RequestContext) -> bool {
        true
    }

    /// No selector matched. Changes nothing but the context.
    ///
    /// # Errors
    /// The answer of plugins that must not be missed.
    fn no_selector(&self, _cx: &mut RequestContext) -> HookResult {
        Ok(Flow::Continue)
    }

    /// A selector matched, but none of its rules. Changes nothing but the context.
    ///
    /// # Errors
    /// The answer of plugins that must not be missed.
    fn no_rule(&self, _cx: &mut RequestContext) -> HookResult {
        Ok(Flow::Continue)
    }

    /// Selector and rule matched.
    fn request_head<'a>(
        &'a self,
        hit: HitRef<'a>,
        cx: &'a mut RequestContext,
    ) -> Hook<'a, HookResult>;

    /// The filter for the request body.
    ///
    /// # Errors
    /// Ends the request.
    fn request_body_filter(
        &self,
        _hit: &mut Hit,
        _cx: &mut RequestContext,
    ) -> Result<Option<Box<dyn BodyFilter>>, GatewayError> {
        Ok(None)
    }

    /// The whole request body.
    fn request_body<'a>(
        &'a self,
        _hit: &'a mut Hit,
        _cx: &'a mut RequestContext,
        body: Bytes,
    ) -> Hook<'a, Result<BodyFlow, GatewayError>> {
        Hook::Ready(Ok(BodyFlow::Continue(body)))
    }

    /// Wraps the upstream call.
    fn around<'a>(
        &'a self,
        _hit: &'a mut Hit,
        cx: &'a mut RequestContext,
        next: &'a mut dyn Around,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Body>, GatewayError>> + Send + 'a>> {
        next.call(cx)
    }

    /// An attempt on an upstream ended.
    fn attempt(&self, _hit: &mut Hit, _attempt: &Attempt<'_>) {}

    /// A response head is there, the upstream's or another plugin's.
    fn response_head<'a>(
        &'a self,
        _hit: &'a mut Hit,
        _cx: &'a mut RequestContext,
        _head: &'a mut response::Parts,
    ) -> Hook<'a, HookResult> {
        Hook::Ready(Ok(Flow::Continue))
    }

    /// The filter for the response body.
    ///
    /// # Errors
    /// Ends the request.
    fn response_body_filter(
        &self,
        _hit: &mut Hit,
        _head: &mut response::Parts,
    ) -> Result<Option<Box<dyn BodyFilter>>, GatewayError> {
        Ok(None)
    }

    /// The whole response body.
    fn response_body<'a>(
        &'a self,
        _hit: &'a mut Hit,
        _head: &'a mut response::Parts,
        body: Bytes,
    ) -> Hook<'a, Result<Bytes, GatewayError>> {
        Hook::Ready(Ok(body))
    }

    /// The request is over. Called exactly once for every hit that asked for it.
    fn completion(&self, _hit: &mut Hit, _completion: &Completion) {}

    /// The twin of [`Plugin::request_head`], for a context that was made to explain a request.
    ///
    /// It does to the context what the hook would do, by the same code, so that later plugins are asked
    /// as they would be; and it tells `notes` of that and of what the later hooks would do. It changes
    /// nothing else and waits for nothing: limiters, breakers and balancers say what they *would*
    /// answer, chance is decided by [`Notes::chance`], external calls are named, not made, and
    /// nothing is kept or spawned. [`Plugin::applies`], [`Plugin::no_selector`] and
    /// [`Plugin::no_rule`] are asked as they are.
    ///
    /// # Errors
    /// What the hook would fail with.
    fn explain(&self, hit: HitRef<'_>, cx: &mut RequestContext, notes: &mut Notes) -> HookResult;
}
