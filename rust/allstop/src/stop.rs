//! Hearing of a stop: by a callback, and by a future.
//!
//! 1. The function of a callback is called at most once, since `run` takes it out of its cell. Only
//!    the core calls `run`, once; the owner touches the cell only when the core has let go of it
//!    (callback_release has returned, or the callback itself is dropping the StopCallback, after
//!    `run` has taken the function).
//! 2. A waker is cloned, woken and dropped with no lock held: it is code of an executor.

use crate::{sys, Coordinator};
use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::future::Future;
use std::pin::Pin;
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

type Function = Box<dyn FnOnce() + Send>;

/// A registered stop callback. Dropping it removes the callback, and blocks while the callback runs
/// on another thread: afterwards it is not running and will not run. The callback may drop it
/// itself. A callback that has run is used up: a stop after `clearStop()` needs another.
pub struct StopCallback {
    coord: Coordinator,
    callback: *mut sys::allstop_callback,
    cell: *mut UnsafeCell<Option<Function>>, // of a Box
}

// SAFETY: allstop_callback_release may be called on any thread, and the function is Send.
unsafe impl Send for StopCallback {}
// SAFETY: a shared reference gives access to nothing.
unsafe impl Sync for StopCallback {}

unsafe extern "C" fn run(context: *mut c_void) {
    let cell = context.cast::<UnsafeCell<Option<Function>>>();
    if let Some(function) = (*(*cell).get()).take() {
        function(); // may free `cell`
    }
}

impl StopCallback {
    pub(crate) fn new(coord: &Coordinator, function: Function) -> Self {
        let cell = Box::into_raw(Box::new(UnsafeCell::new(Some(function))));
        let mut made = Self {
            coord: coord.clone(),
            callback: ptr::null_mut(),
            cell,
        };
        let state = coord.as_raw().state;
        // SAFETY: coord owns a reference, and `cell` lives until the drop of `made`.
        let status =
            unsafe { (coord.table().on_stop)(state, run, cell.cast(), &mut made.callback) };
        assert!(
            status == sys::ALLSTOP_OK,
            "no memory is left for a stop callback"
        );
        made
    }
}

impl Drop for StopCallback {
    fn drop(&mut self) {
        // SAFETY: invariant 1.
        unsafe {
            if !self.callback.is_null() {
                (self.coord.table().callback_release)(self.callback);
            }
            drop(Box::from_raw(self.cell));
        }
    }
}

#[derive(Default)]
struct Heard {
    is_stopped: bool,
    waker: Option<Waker>,
}

/// The future of [`Coordinator::stopped`].
pub struct Stopped {
    heard: Arc<Mutex<Heard>>,
    _callback: StopCallback,
}

impl Stopped {
    pub(crate) fn new(coord: &Coordinator) -> Self {
        let heard = Arc::new(Mutex::new(Heard::default()));
        let told = heard.clone();
        let callback = coord.on_stop(move || {
            let waker = {
                let mut heard = told.lock().unwrap_or_else(PoisonError::into_inner);
                heard.is_stopped = true;
                heard.waker.take()
            };
            if let Some(waker) = waker {
                waker.wake();
            }
        });
        Self {
            heard,
            _callback: callback,
        }
    }
}

impl Future for Stopped {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let waker = context.waker().clone();
        let replaced = {
            let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
            if heard.is_stopped {
                Err(waker)
            } else {
                Ok(heard.waker.replace(waker))
            }
        };
        match replaced {
            Err(_) => Poll::Ready(()),
            Ok(_) => Poll::Pending,
        }
    }
}
