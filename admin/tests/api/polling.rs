//! Gateways that poll: what they fetch, when they are told of changes, and what they may not.

mod held;
mod poller;
mod recordings;
mod refused;

use crate::scene::on_both_stores;
use held::{
    a_change_between_fetch_and_question_is_found_at_once, a_gateway_is_listed_with_what_it_has,
    another_namespace_wakes_nobody, edits_by_rest_wake_within_a_moment,
    times_grow_beyond_what_another_admin_told,
};

on_both_stores!(
    edits_by_rest_wake_within_a_moment,
    a_change_between_fetch_and_question_is_found_at_once,
    another_namespace_wakes_nobody,
    times_grow_beyond_what_another_admin_told,
    a_gateway_is_listed_with_what_it_has,
);
