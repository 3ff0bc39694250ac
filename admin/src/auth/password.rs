//! Passwords: hashed with argon2id, never more than a few at once.

use std::{
    fmt, io,
    panic::AssertUnwindSafe,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, Sender, channel},
    },
    time::{Duration, Instant},
};

use argon2::{
    Algorithm, Argon2, Params, PasswordHasher, PasswordVerifier, Version,
    password_hash::phc::PasswordHash,
};
use aws_lc_rs::{constant_time::verify_slices_are_equal, digest};
use tokio::sync::{Semaphore, oneshot};

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

/// How often a flood of log-ins is told.
const TOLD_EVERY: Duration = Duration::from_secs(10);

type Job = Box<dyn FnOnce() + Send>;

/// Makes and checks password hashes, on threads of their own.
///
/// A hash takes much memory, and what a thread has freed stays its own: on the many threads of a
/// blocking pool a flood of log-ins would leave hundreds of megabytes behind.
#[derive(Clone)]
pub struct Passwords {
    jobs: Sender<Job>,
    /// Places of those that are hashed or wait.
    places: Arc<Semaphore>,
    refused: Arc<Mutex<Refused>>,
}

/// Log-ins turned away since that was last told.
#[derive(Default)]
struct Refused {
    count: u64,
    told: Option<Instant>,
}

impl fmt::Debug for Passwords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Passwords").finish_non_exhaustive()
    }
}

impl Passwords {
    /// Starts the threads; they end with the last clone.
    ///
    /// # Errors
    /// No thread can be had.
    pub fn start() -> io::Result<Self> {
        let (jobs, queue) = channel::<Job>();
        let queue = Arc::new(Mutex::new(queue));
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(4);
        for number in 0..threads {
            let queue = Arc::clone(&queue);
            std::thread::Builder::new()
                .name(format!("password-{number}"))
                .spawn(move || work_off(&queue))?;
        }
        let places = Arc::new(Semaphore::new(threads + MAX_WAITING));
        Ok(Self { jobs, places, refused: Arc::default() })
    }
}

fn work_off(queue: &Mutex<Receiver<Job>>) {
    loop {
        // The lock is held while waiting for a job, not while working on it.
        let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        match job {
            // A panic is that job's; its caller sees that no answer comes.
            Ok(job) => drop(std::panic::catch_unwind(AssertUnwindSafe(job))),
            Err(_) => return,
        }
    }
}

impl Refused {
    fn count(&mut self) {
        self.count += 1;
        if self.told.is_none_or(|told| told.elapsed() > TOLD_EVERY) {
            let count = std::mem::take(&mut self.count);
            tracing::warn!(count, limit = MAX_WAITING, "too many log-ins are waiting, refused");
            self.told = Some(Instant::now());
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
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
            self.refused.lock().unwrap_or_else(PoisonError::into_inner).count();
            return Err(ApiError::Unreadable);
        };
        let (answer, answered) = oneshot::channel();
        let job = Box::new(move || {
            // Nobody waits any more where the client has left.
            if !answer.is_closed() {
                let _ = answer.send(work());
            }
            drop(place);
        });
        self.jobs.send(job).map_err(|_| anyhow::anyhow!("the password threads have ended"))?;
        let result = answered.await.map_err(anyhow::Error::from)?;
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
        let passwords = Passwords::start().unwrap();
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
        let places = Arc::new(Semaphore::new(0));
        let passwords = Passwords { places, ..Passwords::start().unwrap() };
        let refused = passwords.hash("x".to_owned()).await.unwrap_err();
        assert!(matches!(refused, ApiError::Unreadable));
    }
}
