//! One stop flag and one stop record for the threads of Rust, C++ and JavaScript in one process.
//!
//! A Node addon gets a [`Coordinator`] from the JavaScript object that its caller passes:
//!
//! ```no_run
//! # unsafe fn start(env: *mut std::ffi::c_void, value: *mut std::ffi::c_void)
//! #     -> Result<(), allstop::Status> {
//! let coord = unsafe { allstop::Coordinator::from_napi(env, value) }?;
//! coord.spawn("hasher", |coord| {
//!     while !coord.should_stop() {
//!         // hash the next chunk; a panic stops everybody, and is what join() throws
//!     }
//! });
//! # Ok(())
//! # }
//! ```
//!
//! The addon links nothing of allstop: the functions come with the object, from the package that
//! the caller has installed.

use allstop_sys as sys;
use std::any::Any;
use std::ffi::c_void;
use std::fmt;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr;
use std::time::Duration;

mod error;
mod stop;

pub use error::{Error, Status};
pub use stop::{StopCallback, Stopped};

/// One reference to the state that a set of threads shares in order to stop together. A clone is
/// another reference to the same state. Any thread may use it, also after the JavaScript
/// environment that gave it has ended.
pub struct Coordinator {
    handle: sys::allstop_coordinator,
}

// SAFETY: the functions of allstop.h may be called on any thread, several at the same time.
unsafe impl Send for Coordinator {}
unsafe impl Sync for Coordinator {}

impl Clone for Coordinator {
    fn clone(&self) -> Self {
        // SAFETY: self owns a reference.
        unsafe { (self.table().retain)(self.handle.state) };
        Self {
            handle: self.handle,
        }
    }
}

impl Drop for Coordinator {
    fn drop(&mut self) {
        // SAFETY: the reference is this object's own.
        unsafe { (self.table().release)(self.handle.state) };
    }
}

impl fmt::Debug for Coordinator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Coordinator")
            .field("should_stop", &self.should_stop())
            .finish()
    }
}

impl Coordinator {
    /// The coordinator of a JavaScript `Coordinator` or of its `signal`. Keeps the addon in memory,
    /// so that its threads may outlive the environment. No JavaScript runs, and no JavaScript
    /// exception is pending afterwards: throw one for the status.
    ///
    /// # Errors
    /// [`Status::INVALID_HANDLE`]: the value is neither. [`Status::FAILED_PRECONDITION`]: the
    /// object comes from a package with another major version of the C interface.
    ///
    /// # Safety
    /// `env` and `value` are a `napi_env` and a `napi_value` of it, and the caller is on its
    /// JavaScript thread.
    pub unsafe fn from_napi(env: *mut c_void, value: *mut c_void) -> Result<Self, Status> {
        sys::from_napi(env, value)
            .map(|handle| Self { handle })
            .map_err(Status::from_code)
    }

    /// Takes over the reference that `handle` owns.
    ///
    /// # Safety
    /// `handle` came from allstop.h, and its caller owned one reference.
    pub unsafe fn from_raw(handle: sys::allstop_coordinator) -> Self {
        Self { handle }
    }

    /// The handle, for the functions of allstop.h. Borrowed.
    pub fn as_raw(&self) -> sys::allstop_coordinator {
        self.handle
    }

    pub(crate) fn table(&self) -> &sys::allstop_table {
        // SAFETY: tables live as long as the process. An older package has a shorter one: members
        // from 1.1 on are read only after `has`.
        unsafe { &*self.handle.table }
    }

    /// True while the coordinator is stopped: one load. What the requester wrote before is visible.
    pub fn should_stop(&self) -> bool {
        // SAFETY: self owns a reference.
        unsafe { sys::should_stop(&self.handle) }
    }

    /// Requests a stop of all threads. Runs the stop callbacks on this thread before it returns.
    pub fn request_stop(&self) -> Result<(), Status> {
        // SAFETY: self owns a reference.
        Status::check(unsafe { (self.table().request_stop)(self.handle.state, ptr::null()) })
    }

    /// Requests a stop with an error, which a join throws.
    ///
    /// # Errors
    /// [`Status::FAILED_PRECONDITION`]: a join has completed, so the error would reach nobody.
    pub fn request_stop_with(&self, error: &Error) -> Result<(), Status> {
        error.with_view(|view| {
            // SAFETY: the view is valid during the call, and self owns a reference.
            Status::check(unsafe { (self.table().request_stop)(self.handle.state, view) })
        })
    }

    /// Blocks until a stop is requested, for at most `timeout`; None: without a limit. True if
    /// there was a stop, even if it has been cleared since. Never on a JavaScript thread.
    pub fn wait_for_stop(&self, timeout: Option<Duration>) -> bool {
        // SAFETY: self owns a reference.
        unsafe {
            (self.table().wait_for_stop)(self.handle.state, in_ms(timeout)) == sys::ALLSTOP_OK
        }
    }

    /// A coordinator that stops when this one stops, and not the other way round. None without
    /// memory, with 256 levels, or with a package older than 1.1 of the C interface.
    pub fn child(&self) -> Option<Self> {
        let mut handle = self.handle;
        // SAFETY: self owns a reference; `has` says whether the table has the function.
        unsafe {
            if !sys::has(handle.table, sys::offset_in_table!(child)) {
                return None;
            }
            let table = self.table();
            if (table.child)(self.handle.state, ptr::null(), &mut handle.state) != sys::ALLSTOP_OK {
                return None;
            }
            handle.stop_word = (table.stop_word)(handle.state);
        }
        Some(Self { handle })
    }

    /// The error of the stop, else the one that was reported beside it, as that of a hook.
    pub fn stop_error(&self) -> Option<Error> {
        Error::of_stop(self)
    }

    /// Starts a registered thread: a join of the coordinator waits for it, and `explain()` names
    /// it. It is registered before it starts. Nothing waits for it here: `await coord.join()` in
    /// JavaScript does, or a C++ thread.
    ///
    /// A panic of `f` requests a stop, with its message as the error (`nativeType` 'panic'); with
    /// `panic = "abort"` it ends the process. `f` and its captures are dropped before the thread
    /// counts as ended. If the system has no thread to give, that is the error of the stop.
    pub fn spawn(&self, name: &str, f: impl FnOnce(&Coordinator) + Send + 'static) {
        let Ok(registration) = self.register(name) else {
            let _ = self.request_stop_with(&Error::new("A thread could not be registered"));
            return;
        };
        let unstarted = Unstarted(Some(registration));
        let started = std::thread::Builder::new()
            .name(name.replace('\0', ""))
            .spawn(move || {
                let mut unstarted = unstarted; // all of it, not its field
                let Some(registration) = unstarted.0.take() else {
                    return;
                };
                registration.enter();
                match catch_unwind(AssertUnwindSafe(|| f(&registration.coord))) {
                    Ok(()) => drop(registration),
                    Err(payload) => registration.fail(&of_panic(payload)),
                }
            });
        drop(started); // on failure the registration has ended with an error, else let go of it
    }

    /// Registers a piece of work that another party's thread does: a task of tokio, of a thread
    /// pool, of libuv. Until the result is dropped or fails, a join waits for the work, and
    /// `explain()` names it.
    ///
    /// ```no_run
    /// # struct Pool; impl Pool { fn spawn<T>(&self, _: T) {} }
    /// # fn start(coord: &allstop::Coordinator, tokio: &Pool) -> Result<(), allstop::Status> {
    /// let registration = coord.register("download")?;
    /// let stopped = coord.stopped();
    /// tokio.spawn(async move {
    ///     stopped.await; // or `tokio::select!` with the work
    ///     drop(registration); // or registration.fail(&error)
    /// });
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Status::RESOURCE_EXHAUSTED`]: there is no memory.
    pub fn register(&self, name: &str) -> Result<Registration, Status> {
        let mut thread = ptr::null_mut();
        let named = sys::allstop_string::of(name);
        // SAFETY: self owns a reference, and the name is valid during the call.
        Status::check(unsafe {
            (self.table().thread_register)(self.handle.state, named, 0, &mut thread)
        })?;
        Ok(Registration {
            coord: self.clone(),
            thread,
        })
    }

    /// Blocks until all registered threads have ended; after a stop for at most `grace_period`
    /// (None: without a limit). Never on a JavaScript thread, where `await coord.join()` is.
    ///
    /// # Errors
    /// [`Status::STOPPED_BY_ERROR`]: read it with [`Coordinator::stop_error`].
    /// [`Status::STRAGGLERS`]: threads were alive after the grace period.
    /// [`Status::SELF_JOIN`]: the calling thread is registered itself.
    pub fn join(&self, grace_period: Option<Duration>) -> Result<(), Status> {
        // SAFETY: self owns a reference.
        Status::check(unsafe { (self.table().join)(self.handle.state, in_ms(grace_period), 0) })
    }

    /// Calls `f` once: on the thread that requests a stop, before that request returns; at once if
    /// the coordinator is stopped already. `f` must not block and must not panic (that ends the
    /// process). Dropping the result removes the callback; see [`StopCallback`].
    #[must_use = "dropping the StopCallback removes the callback"]
    pub fn on_stop(&self, f: impl FnOnce() + Send + 'static) -> StopCallback {
        StopCallback::new(self, Box::new(f))
    }

    /// A future that is ready at the first stop from now on, or at once if the coordinator is
    /// stopped; also if the stop has been cleared since. For any executor.
    pub fn stopped(&self) -> Stopped {
        Stopped::new(self)
    }
}

/// The registration of a piece of work: [`Coordinator::register`]. Dropping it ends it, on any
/// thread.
#[must_use = "dropping the Registration ends it"]
pub struct Registration {
    coord: Coordinator,
    thread: *mut sys::allstop_thread,
}

// SAFETY: allstop_thread_done and allstop_thread_enter may be called on any thread.
unsafe impl Send for Registration {}
// SAFETY: enter, the only function of a shared reference, may be called on any thread.
unsafe impl Sync for Registration {}

impl Registration {
    /// Tells the coordinator that the calling thread does the work: a stop that it requests names
    /// the work. For work that stays on one thread, so not in a future that moves.
    pub fn enter(&self) {
        // SAFETY: the token is this object's own, and has not ended.
        unsafe { (self.coord.table().thread_enter)(self.thread) };
    }

    /// Ends the registration with an error, which requests a stop.
    pub fn fail(mut self, error: &Error) {
        let thread = std::mem::replace(&mut self.thread, ptr::null_mut());
        // SAFETY: the token is this object's own, and ended once.
        error.with_view(|view| unsafe { (self.coord.table().thread_done)(thread, view) });
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        if !self.thread.is_null() {
            // SAFETY: as above.
            unsafe { (self.coord.table().thread_done)(self.thread, ptr::null()) };
        }
    }
}

/// Of a thread that has not started yet. If the system has none to give, this is dropped.
struct Unstarted(Option<Registration>);

impl Drop for Unstarted {
    fn drop(&mut self) {
        if let Some(registration) = self.0.take() {
            registration.fail(&Error::new(
                "A thread could not be started: the system has none to give",
            ));
        }
    }
}

fn in_ms(time: Option<Duration>) -> f64 {
    time.map_or(f64::INFINITY, |time| time.as_secs_f64() * 1000.0)
}

fn of_panic(payload: Box<dyn Any + Send>) -> Error {
    let message = match payload.downcast::<String>() {
        Ok(text) => *text,
        Err(payload) => match payload.downcast::<&'static str>() {
            Ok(text) => (*text).to_owned(),
            Err(other) => {
                // Its drop may panic, too, which must not go through the thread's end.
                let _ = catch_unwind(AssertUnwindSafe(|| drop(other)));
                "A thread panicked with a value that is no text".to_owned()
            }
        },
    };
    Error {
        native_type: "panic".to_owned(),
        ..Error::new(message)
    }
}
