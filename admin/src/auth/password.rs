//! Passwords: hashed with argon2id, never more than a few at once.

use std::{fmt, sync::Arc};

use argon2::{
    Algorithm, Argon2, Params, PasswordHasher, PasswordVerifier, Version,
    password_hash::phc::PasswordHash,
};
use aws_lc_rs::{constant_time::verify_slices_are_equal, digest};
use tokio::sync::Semaphore;

use crate::error::{ApiError, ApiResult};

/// How many log-ins may wait for their turn; one more is turned away at once.
const MAX_WAITING: usize = 64;

/// Memory of one hash in KiB, and passes over it: the least that OWASP names for argon2id. It keeps
/// a log-in far below the second after which some clients give up, on a busy machine too.
const MEMORY_KIB: u32 = 19 * 1024;
const PASSES: u32 = 2;

/// The outcome of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The password is right.
    Right,
    /// The password is right, and its stored hash is of the old kind and should be replaced.
    RightButOld,
    /// The password is wrong.
    Wrong,
}

/// Makes and checks password hashes on the blocking pool.
#[derive(Clone)]
pub struct Passwords {
    running: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
}

impl fmt::Debug for Passwords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Passwords").finish_non_exhaustive()
    }
}

impl Default for Passwords {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self {
            running: Arc::new(Semaphore::new(cores.min(4))),
            waiting: Arc::new(Semaphore::new(MAX_WAITING)),
        }
    }
}

impl Passwords {
    /// The hash to store for `password`, in PHC form.
    ///
    /// # Errors
    /// [`ApiError::Unreadable`] when too many are waiting.
    pub async fn hash(&self, password: String) -> ApiResult<String> {
        self.run(move || {
            let hash = hasher()?.hash_password(password.as_bytes())?;
            Ok(hash.to_string())
        })
        .await
    }

    /// Checks `password` against a stored hash of either kind. Without one (no such user) it takes
    /// the same time and is wrong.
    ///
    /// # Errors
    /// [`ApiError::Unreadable`] when too many are waiting.
    pub async fn verify(&self, stored: Option<String>, password: String) -> ApiResult<Verdict> {
        self.run(move || Ok(verify(stored.as_deref(), &password))).await
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, argon2::password_hash::Error> + Send + 'static,
    ) -> ApiResult<T> {
        let waiting = self.waiting.try_acquire().map_err(|_| {
            tracing::warn!(limit = MAX_WAITING, "too many log-ins are waiting, one is refused");
            ApiError::Unreadable
        })?;
        let running = Arc::clone(&self.running).acquire_owned().await;
        drop(waiting);
        let running = running.map_err(anyhow::Error::from)?;
        let done = tokio::task::spawn_blocking(move || {
            let result = work();
            drop(running);
            result
        });
        let result = done.await.map_err(anyhow::Error::from)?;
        result.map_err(|error| anyhow::anyhow!("hash a password: {error}").into())
    }
}

fn hasher() -> Result<Argon2<'static>, argon2::password_hash::Error> {
    let params = Params::new(MEMORY_KIB, PASSES, 1, None)?;
    Ok(Argon2::new(Algorithm::Argon2id, Version::V0x13, params))
}

fn verify(stored: Option<&str>, password: &str) -> Verdict {
    let Some(stored) = stored else {
        if let Ok(hasher) = hasher() {
            // The outcome does not matter, only the time it takes.
            drop(hasher.hash_password(password.as_bytes()));
        }
        return Verdict::Wrong;
    };
    if let Ok(hash) = PasswordHash::new(stored) {
        let right = Argon2::default().verify_password(password.as_bytes(), &hash).is_ok();
        return if right { Verdict::Right } else { Verdict::Wrong };
    }
    let given = legacy_hash(password);
    match verify_slices_are_equal(given.as_bytes(), stored.to_ascii_lowercase().as_bytes()) {
        Ok(()) => Verdict::RightButOld,
        Err(_) => Verdict::Wrong,
    }
}

/// The hash that ShenYu stores: SHA-512 in lower-case hexadecimal digits.
#[must_use]
pub fn legacy_hash(password: &str) -> String {
    use fmt::Write as _;
    digest::digest(&digest::SHA512, password.as_bytes()).as_ref().iter().fold(
        String::with_capacity(128),
        |mut text, byte| {
            // Writing to a string does not fail.
            let _infallible = write!(text, "{byte:02x}");
            text
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_old_hash_is_the_reference_s() {
        assert_eq!(
            legacy_hash("123456"),
            "ba3253876aed6bc22d4a6ff53d8406c6ad864195ed144ab5c87621b6c233b548\
             baeae6956df346ec8c17f5ea10f35ee3cbc514797ed7ddd3145464e2a0bab413"
        );
    }

    #[tokio::test]
    async fn both_kinds_of_hash_are_checked() {
        let passwords = Passwords::default();
        let hash = passwords.hash("Adm1n#Pass".to_owned()).await.unwrap();
        assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{hash}");
        let old = legacy_hash("Adm1n#Pass");
        for (stored, password, wanted) in [
            (Some(hash.clone()), "Adm1n#Pass", Verdict::Right),
            (Some(hash), "adm1n#Pass", Verdict::Wrong),
            (Some(old.to_uppercase()), "Adm1n#Pass", Verdict::RightButOld),
            (Some(old), "", Verdict::Wrong),
            (Some(String::new()), "", Verdict::Wrong),
            (None, "Adm1n#Pass", Verdict::Wrong),
        ] {
            let verdict = passwords.verify(stored.clone(), password.to_owned()).await.unwrap();
            assert_eq!(verdict, wanted, "{stored:?} {password}");
        }
    }

    #[tokio::test]
    async fn too_many_at_once_are_turned_away() {
        let passwords = Passwords {
            running: Arc::new(Semaphore::new(1)),
            waiting: Arc::new(Semaphore::new(0)),
        };
        let refused = passwords.hash("x".to_owned()).await.unwrap_err();
        assert!(matches!(refused, ApiError::Unreadable));
    }
}
