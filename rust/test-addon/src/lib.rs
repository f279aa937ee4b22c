//! An addon on bare Node-API, for the scenarios of test/addons/rust.mjs.

use allstop::{Coordinator, Error, Status, StopCallback};
use std::ffi::{c_char, c_void};
use std::future::Future;
use std::ptr;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

type Env = *mut c_void;
type Value = *mut c_void;
type Info = *mut c_void;
type Callback = unsafe extern "C" fn(Env, Info) -> Value;
const AUTO_LENGTH: usize = usize::MAX;

extern "C" {
    fn napi_get_cb_info(
        env: Env,
        info: Info,
        count: *mut usize,
        arguments: *mut Value,
        this: *mut Value,
        data: *mut *mut c_void,
    ) -> i32;
    fn napi_create_function(
        env: Env,
        name: *const c_char,
        length: usize,
        callback: Callback,
        data: *mut c_void,
        result: *mut Value,
    ) -> i32;
    fn napi_set_named_property(env: Env, object: Value, name: *const c_char, value: Value) -> i32;
    fn napi_create_int32(env: Env, number: i32, result: *mut Value) -> i32;
    fn napi_create_string_utf8(
        env: Env,
        text: *const c_char,
        length: usize,
        result: *mut Value,
    ) -> i32;
    fn napi_throw_type_error(env: Env, code: *const c_char, message: *const c_char) -> i32;
}

static ROUNDS: AtomicI32 = AtomicI32::new(0);
static CALLS: AtomicI32 = AtomicI32::new(0);
static SEEN: Mutex<String> = Mutex::new(String::new());
static CALLBACK: Mutex<Option<StopCallback>> = Mutex::new(None);

fn see(coord: &Coordinator) {
    let text = coord
        .stop_error()
        .map_or("no error".to_owned(), |error| error.to_string());
    *SEEN.lock().unwrap() = text;
}

/// Counts itself when it is dropped.
struct Dropped;
impl Drop for Dropped {
    fn drop(&mut self) {
        CALLS.fetch_add(100, Ordering::SeqCst);
    }
}

struct Unpark(Thread);
impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on(future: impl Future<Output = ()>) {
    let mut future = Box::pin(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    while future.as_mut().poll(&mut context) == Poll::Pending {
        thread::park();
    }
}

// What each function does with the coordinator.

fn start(coord: Coordinator) {
    coord.spawn("worker", |coord| {
        while !coord.should_stop() {
            ROUNDS.fetch_add(1, Ordering::SeqCst);
            thread::yield_now();
        }
        see(coord);
    });
}

fn wait(coord: Coordinator) {
    coord.spawn("waiter", |coord| {
        coord.wait_for_stop(None);
        see(coord);
    });
}

fn await_stop(coord: Coordinator) {
    let stopped = coord.stopped();
    coord.spawn("future", |_| {
        block_on(stopped);
        CALLS.fetch_add(1, Ordering::SeqCst);
    });
}

fn panics(coord: Coordinator) {
    let dropped = Dropped;
    coord.spawn("panicking", move |_| {
        let _dropped = &dropped;
        panic!("sector {} is bad", 7);
    });
}

fn panics_with_a_value(coord: Coordinator) {
    coord.spawn("panicking", |_| std::panic::panic_any(7));
}

fn fails(coord: Coordinator) {
    coord.spawn("failing", |coord| {
        let error = Error {
            name: "RangeError".into(),
            code: "E_SECTOR".into(),
            ..Error::new("bad")
        };
        coord.request_stop_with(&error).unwrap();
    });
}

fn on_stop(coord: Coordinator) {
    let callback = coord.on_stop(|| {
        CALLS.fetch_add(1, Ordering::SeqCst);
    });
    *CALLBACK.lock().unwrap() = Some(callback);
}

fn on_stop_dropped(coord: Coordinator) {
    drop(coord.on_stop(|| {
        CALLS.fetch_add(1, Ordering::SeqCst);
    }));
}

fn on_stop_drops_itself(coord: Coordinator) {
    let callback = coord.on_stop(|| {
        let own = CALLBACK.lock().unwrap().take();
        drop(own);
        CALLS.fetch_add(1, Ordering::SeqCst);
    });
    *CALLBACK.lock().unwrap() = Some(callback);
}

fn child(coord: Coordinator) {
    let own = coord.child().unwrap();
    coord.spawn("of a child", move |_| {
        own.wait_for_stop(None);
        CALLS.fetch_add(1, Ordering::SeqCst);
    });
}

/// The join of a thread that is not registered: the scenario has no other here.
fn joins(coord: Coordinator) {
    thread::spawn(move || {
        let status = coord.join(None).expect_err("the stop has an error");
        see(&coord);
        let why = std::mem::take(&mut *SEEN.lock().unwrap());
        *SEEN.lock().unwrap() = format!("{}: {why}", status.name());
        CALLS.fetch_add(1, Ordering::SeqCst);
    });
}

fn registers(coord: Coordinator) {
    let registration = coord.register("task").unwrap();
    thread::spawn(move || {
        block_on(coord.stopped());
        CALLS.fetch_add(1, Ordering::SeqCst);
        drop(registration);
    });
}

fn registers_and_fails(coord: Coordinator) {
    let registration = coord.register("task").unwrap();
    thread::spawn(move || {
        registration.enter();
        registration.fail(&Error::new("no route"));
    });
}

fn layout(coord: Coordinator) {
    // SAFETY: the table is one of a package whose version is that of the crate.
    let table = unsafe { &*coord.as_raw().table };
    let same = table.size as usize == std::mem::size_of::<allstop_sys::allstop_table>()
        && (table.major, table.minor)
            == (
                allstop_sys::ALLSTOP_ABI_MAJOR,
                allstop_sys::ALLSTOP_ABI_MINOR,
            );
    CALLS.store(i32::from(same), Ordering::SeqCst);
}

type Named = (&'static [u8], fn(Coordinator));
const FUNCTIONS: &[Named] = &[
    (b"start\0", start),
    (b"wait\0", wait),
    (b"awaitStop\0", await_stop),
    (b"panics\0", panics),
    (b"panicsWithAValue\0", panics_with_a_value),
    (b"fails\0", fails),
    (b"onStop\0", on_stop),
    (b"onStopDropped\0", on_stop_dropped),
    (b"onStopDropsItself\0", on_stop_drops_itself),
    (b"child\0", child),
    (b"joins\0", joins),
    (b"registers\0", registers),
    (b"registersAndFails\0", registers_and_fails),
    (b"layout\0", layout),
];

unsafe extern "C" fn call(env: Env, info: Info) -> Value {
    let mut count = 1;
    let mut argument = ptr::null_mut();
    let mut index = ptr::null_mut();
    napi_get_cb_info(
        env,
        info,
        &mut count,
        &mut argument,
        ptr::null_mut(),
        &mut index,
    );
    match Coordinator::from_napi(env, argument) {
        Ok(coord) => FUNCTIONS[index as usize].1(coord),
        Err(status) => {
            assert_eq!(status, Status::INVALID_HANDLE);
            let code = format!("{}\0", status.name());
            let message = b"The argument must be a Coordinator or its signal\0";
            napi_throw_type_error(env, code.as_ptr().cast(), message.as_ptr().cast());
        }
    }
    ptr::null_mut()
}

unsafe extern "C" fn number(env: Env, info: Info) -> Value {
    let mut data = ptr::null_mut();
    napi_get_cb_info(
        env,
        info,
        ptr::null_mut(),
        ptr::null_mut(),
        ptr::null_mut(),
        &mut data,
    );
    let number = &*data.cast_const().cast::<AtomicI32>();
    let mut value = ptr::null_mut();
    napi_create_int32(env, number.load(Ordering::SeqCst), &mut value);
    value
}

unsafe extern "C" fn seen(env: Env, _: Info) -> Value {
    let text = SEEN.lock().unwrap();
    let mut value = ptr::null_mut();
    napi_create_string_utf8(env, text.as_ptr().cast(), text.len(), &mut value);
    value
}

unsafe fn define(env: Env, exports: Value, name: &[u8], callback: Callback, data: *mut c_void) {
    let mut function = ptr::null_mut();
    let name = name.as_ptr().cast();
    napi_create_function(env, name, AUTO_LENGTH, callback, data, &mut function);
    napi_set_named_property(env, exports, name, function);
}

/// # Safety
/// Called by the runtime that loads the addon.
#[no_mangle]
pub unsafe extern "C" fn napi_register_module_v1(env: Env, exports: Value) -> Value {
    for (index, (name, _)) in FUNCTIONS.iter().enumerate() {
        define(env, exports, name, call, index as *mut c_void);
    }
    let at = |number: &'static AtomicI32| ptr::from_ref(number).cast_mut().cast();
    define(env, exports, b"rounds\0", number, at(&ROUNDS));
    define(env, exports, b"calls\0", number, at(&CALLS));
    define(env, exports, b"seen\0", seen, ptr::null_mut());
    exports
}
