//! What allstop_node.h and allstop_pin_module.h do inline.

use crate::*;

type Function = *const c_void;

#[cfg(unix)]
mod system {
    use super::*;
    use std::ffi::c_int;

    #[repr(C)]
    struct Place {
        file: *const c_char,
        base: *mut c_void,
        symbol: *const c_char,
        address: *mut c_void,
    }
    extern "C" {
        fn dlsym(library: *mut c_void, name: *const c_char) -> Function;
        fn dladdr(address: *const c_void, place: *mut Place) -> c_int;
        fn dlopen(file: *const c_char, flags: c_int) -> *mut c_void;
    }
    #[cfg(target_vendor = "apple")]
    const DEFAULT: *mut c_void = -2isize as *mut c_void;
    #[cfg(not(target_vendor = "apple"))]
    const DEFAULT: *mut c_void = std::ptr::null_mut();
    #[cfg(target_vendor = "apple")]
    const LAZY_NODELETE: c_int = 0x1 | 0x80;
    #[cfg(not(target_vendor = "apple"))]
    const LAZY_NODELETE: c_int = 0x1 | 0x1000;

    /// The function `name`, which ends with a NUL, of the running program.
    pub unsafe fn find(name: &[u8]) -> Function {
        dlsym(DEFAULT, name.as_ptr().cast())
    }

    /// Keeps the module that has `address` in memory.
    pub unsafe fn pin(address: *const c_void) -> bool {
        let mut place = std::mem::zeroed::<Place>();
        dladdr(address, &mut place) != 0
            && !place.file.is_null()
            && !dlopen(place.file, LAZY_NODELETE).is_null()
    }
}

#[cfg(windows)]
mod system {
    use super::*;

    extern "system" {
        fn GetModuleHandleW(name: *const u16) -> *mut c_void;
        fn GetProcAddress(module: *mut c_void, name: *const c_char) -> Function;
        fn GetModuleHandleExW(flags: u32, address: *const c_void, module: *mut *mut c_void) -> i32;
    }
    const PIN_FROM_ADDRESS: u32 = 0x1 | 0x4;

    pub unsafe fn find(name: &[u8]) -> Function {
        GetProcAddress(GetModuleHandleW(std::ptr::null()), name.as_ptr().cast())
    }

    pub unsafe fn pin(address: *const c_void) -> bool {
        let mut module = std::ptr::null_mut();
        GetModuleHandleExW(PIN_FROM_ADDRESS, address, &mut module) != 0
    }
}

/// Keeps the addon in memory until the process ends. Without it, Node unmaps the addon when the
/// last environment that loaded it ends, and a thread that runs its code crashes. [`from_napi`]
/// calls it; call it yourself if you start threads before. Any thread; again is harmless.
pub fn pin_module() {
    static PINNED: AtomicU32 = AtomicU32::new(0);
    if PINNED.load(Ordering::Relaxed) == 0 {
        let address: *const AtomicU32 = &PINNED;
        // SAFETY: the address is in this module.
        if unsafe { system::pin(address.cast()) } {
            PINNED.store(1, Ordering::Relaxed);
        }
    }
}

#[repr(C)]
struct TypeTag {
    lower: u64,
    upper: u64,
}
const TAG: TypeTag = TypeTag {
    lower: ALLSTOP_CAPSULE_TAG_LOWER,
    upper: ALLSTOP_CAPSULE_TAG_UPPER,
};
const NAPI_OK: i32 = 0;
const NAPI_OBJECT: i32 = 6;

type TypeOf = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut i32) -> i32;
type CheckTag = unsafe extern "C" fn(*mut c_void, *mut c_void, *const TypeTag, *mut bool) -> i32;
type Unwrap = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut *mut c_void) -> i32;

unsafe fn capsule_of(env: *mut c_void, value: *mut c_void) -> Option<*const allstop_capsule> {
    let type_of = system::find(b"napi_typeof\0");
    let check_tag = system::find(b"napi_check_object_type_tag\0");
    let unwrap = system::find(b"napi_unwrap\0");
    if type_of.is_null() || check_tag.is_null() || unwrap.is_null() {
        return None; // no JavaScript here
    }
    let type_of: TypeOf = std::mem::transmute(type_of);
    let check_tag: CheckTag = std::mem::transmute(check_tag);
    let unwrap: Unwrap = std::mem::transmute(unwrap);
    let mut kind = -1;
    let mut is_tagged = false;
    let mut data = std::ptr::null_mut();
    // The type first: on some runtimes it is an error to ask a primitive for its type tag.
    let is_ours = type_of(env, value, &mut kind) == NAPI_OK
        && kind == NAPI_OBJECT
        && check_tag(env, value, &TAG, &mut is_tagged) == NAPI_OK
        && is_tagged
        && unwrap(env, value, &mut data) == NAPI_OK
        && !data.is_null();
    is_ours.then_some(data.cast_const().cast())
}

/// allstop_from_napi: a handle of a JavaScript `Coordinator` or its `signal`, which owns one
/// reference. Keeps the addon in memory. No JavaScript runs, and no exception is pending.
///
/// # Safety
/// `env` and `value` are a `napi_env` and a `napi_value` of it, on its JavaScript thread.
pub unsafe fn from_napi(
    env: *mut c_void,
    value: *mut c_void,
) -> Result<allstop_coordinator, allstop_status> {
    pin_module();
    let capsule = &*capsule_of(env, value).ok_or(ALLSTOP_INVALID_HANDLE)?;
    if capsule.major != ALLSTOP_ABI_MAJOR {
        return Err(ALLSTOP_FAILED_PRECONDITION);
    }
    if capsule.kind != ALLSTOP_CAPSULE_COORDINATOR {
        return Err(ALLSTOP_INVALID_HANDLE);
    }
    ((*capsule.table).retain)(capsule.state);
    Ok(allstop_coordinator {
        table: capsule.table,
        state: capsule.state,
        stop_word: ((*capsule.table).stop_word)(capsule.state),
    })
}
