//! `start(coord)`: starts a native thread, which `await coord.join()` waits for.
//! `rounds()`: how often the thread has worked so far.
//!
//! On bare Node-API, so that nothing is downloaded; not for Windows. With napi-rs, pass
//! `env.raw().cast()` and `value.raw().cast()` to `Coordinator::from_napi`.
use allstop::Coordinator;
use std::ffi::{c_char, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

type Pointer = *mut c_void; // napi_env, napi_value and napi_callback_info
type Callback = unsafe extern "C" fn(Pointer, Pointer) -> Pointer;

#[rustfmt::skip]
extern "C" {
    fn napi_get_cb_info(env: Pointer, info: Pointer, count: *mut usize, arguments: *mut Pointer, this: *mut Pointer, data: *mut Pointer) -> i32;
    fn napi_create_function(env: Pointer, name: *const c_char, length: usize, callback: Callback, data: Pointer, result: *mut Pointer) -> i32;
    fn napi_set_named_property(env: Pointer, object: Pointer, name: *const c_char, value: Pointer) -> i32;
    fn napi_create_uint32(env: Pointer, number: u32, result: *mut Pointer) -> i32;
    fn napi_throw_type_error(env: Pointer, code: *const c_char, message: *const c_char) -> i32;
}

static ROUNDS: AtomicU32 = AtomicU32::new(0);

fn work(coord: &Coordinator) {
    while !coord.should_stop() {
        ROUNDS.fetch_add(1, Ordering::Relaxed); // your work; a panic stops everybody, and join() throws it
        std::thread::sleep(Duration::from_millis(1));
    }
}

unsafe extern "C" fn start(env: Pointer, info: Pointer) -> Pointer {
    let (mut count, mut argument) = (1, null_mut());
    napi_get_cb_info(env, info, &mut count, &mut argument, null_mut(), null_mut());
    match Coordinator::from_napi(env, argument) {
        Ok(coord) => coord.spawn("addon", work),
        Err(status) => {
            let code = format!("{}\0", status.name());
            let message = c"start() takes a Coordinator or its signal";
            napi_throw_type_error(env, code.as_ptr().cast(), message.as_ptr());
        }
    }
    null_mut()
}

unsafe extern "C" fn rounds(env: Pointer, _: Pointer) -> Pointer {
    let mut value = null_mut();
    napi_create_uint32(env, ROUNDS.load(Ordering::Relaxed), &mut value);
    value
}

/// # Safety
/// Called by the runtime that loads the addon.
#[no_mangle]
pub unsafe extern "C" fn napi_register_module_v1(env: Pointer, exports: Pointer) -> Pointer {
    let functions: [(_, Callback); 2] = [(c"start", start), (c"rounds", rounds)];
    for (name, callback) in functions {
        let mut function = null_mut();
        napi_create_function(env, name.as_ptr(), usize::MAX, callback, null_mut(), &mut function);
        napi_set_named_property(env, exports, name.as_ptr(), function);
    }
    exports
}
