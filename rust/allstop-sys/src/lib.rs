//! The C interface of allstop, version 1.7 (`allstop.h`), and what its header does inline: from a
//! JavaScript value to a handle, and keeping the addon in memory.
//!
//! Nothing is linked. A handle brings the table of functions of the installed package, and the
//! functions of Node-API are looked up in the running program, be it Node, Bun or Deno. The crate
//! `allstop` is the safe interface.
#![allow(non_camel_case_types)]

use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::{AtomicU32, Ordering};

mod node;
pub use node::{from_napi, pin_module};

pub const ALLSTOP_ABI_MAJOR: u32 = 1;
pub const ALLSTOP_ABI_MINOR: u32 = 7;

pub type allstop_status = i32;
pub const ALLSTOP_OK: allstop_status = 0;
pub const ALLSTOP_CANCELLED: allstop_status = 1;
pub const ALLSTOP_INVALID_ARGUMENT: allstop_status = 3;
pub const ALLSTOP_DEADLINE_EXCEEDED: allstop_status = 4;
pub const ALLSTOP_RESOURCE_EXHAUSTED: allstop_status = 8;
pub const ALLSTOP_FAILED_PRECONDITION: allstop_status = 9;
pub const ALLSTOP_OUT_OF_RANGE: allstop_status = 11;
pub const ALLSTOP_UNAVAILABLE: allstop_status = 14;
pub const ALLSTOP_INVALID_HANDLE: allstop_status = 100;
pub const ALLSTOP_SELF_JOIN: allstop_status = 101;
pub const ALLSTOP_STRAGGLERS: allstop_status = 102;
pub const ALLSTOP_STOPPED_BY_ERROR: allstop_status = 103;

pub const ALLSTOP_STOP_PLAIN: i32 = 0;
pub const ALLSTOP_STOP_CLEAN: i32 = 1;
pub const ALLSTOP_STOP_ERROR: i32 = 2;
pub const ALLSTOP_CAPSULE_COORDINATOR: u32 = 1;
pub const ALLSTOP_CAPSULE_QUEUE: u32 = 2;
pub const ALLSTOP_CAPSULE_VARIABLE: u32 = 3;
pub const ALLSTOP_CAPSULE_TAG_LOWER: u64 = 0x616c_6c73_746f_7031;
pub const ALLSTOP_CAPSULE_TAG_UPPER: u64 = 0x9d0c_5b0a_7e4f_42c6;

macro_rules! opaque {
    ($($name:ident)*) => { $(#[repr(C)] pub struct $name { _private: [u8; 0] })* };
}
opaque!(allstop_state allstop_thread allstop_callback allstop_record allstop_looper
        allstop_deadline allstop_interruptible allstop_queue_state allstop_queue_options
        allstop_queue_info allstop_item allstop_variable_state allstop_variable_info);

#[repr(C)]
#[derive(Clone, Copy)]
pub struct allstop_string {
    pub data: *const c_char,
    pub size: usize,
}

impl allstop_string {
    pub const EMPTY: Self = Self {
        data: std::ptr::null(),
        size: 0,
    };

    /// A view of `text`, which must live as long. An empty text is no string.
    pub fn of(text: &str) -> Self {
        if text.is_empty() {
            return Self::EMPTY;
        }
        Self {
            data: text.as_ptr().cast(),
            size: text.len(),
        }
    }

    /// # Safety
    /// The view is valid.
    pub unsafe fn to_text(self) -> String {
        if self.data.is_null() {
            return String::new();
        }
        let bytes = std::slice::from_raw_parts(self.data.cast::<u8>(), self.size);
        String::from_utf8_lossy(bytes).into_owned()
    }
}

#[repr(C)]
pub struct allstop_error {
    pub size: u32,
    /// Since 1.7; 0 before.
    pub error_number: u32,
    pub name: allstop_string,
    pub message: allstop_string,
    pub code: allstop_string,
    pub stack: allstop_string,
    pub native_type: allstop_string,
    pub id: allstop_string,
    pub cause: *const allstop_error,
    // Since 1.7
    pub encoded: allstop_string,
}

#[repr(C)]
pub struct allstop_options {
    pub size: u32,
    pub reserved: u32,
    pub name: allstop_string,
    pub clean_stop_types: *const allstop_string,
    pub clean_stop_type_count: usize,
}

#[repr(C)]
pub struct allstop_record_info {
    pub size: u32,
    pub kind: i32,
    pub language: i32,
    pub reserved: u32,
    pub requested_at_ms: i64,
    pub thread_id: u64,
    pub id: allstop_string,
    pub thread_name: allstop_string,
    pub name: allstop_string,
    pub message: allstop_string,
    pub code: allstop_string,
    pub stack: allstop_string,
    pub native_type: allstop_string,
}

pub type allstop_stop_fn = unsafe extern "C" fn(context: *mut c_void);

// A member of the table with arguments; all are functions.
macro_rules! function {
    (($($argument:ty),*)) => { unsafe extern "C" fn($($argument),*) };
    (($($argument:ty),*) -> $result:ty) => { unsafe extern "C" fn($($argument),*) -> $result };
}

/// An older package has a shorter table: ask [`has`] before you read a member from 1.1 on.
#[repr(C)]
pub struct allstop_table {
    pub size: u32,
    pub major: u32,
    pub minor: u32,
    pub reserved: u32,
    pub retain: function!((*mut allstop_state)),
    pub release: function!((*mut allstop_state)),
    pub stop_word: function!((*mut allstop_state) -> *const u32),
    pub request_stop: function!((*mut allstop_state, *const allstop_error) -> allstop_status),
    pub wait_for_stop: function!((*mut allstop_state, f64) -> allstop_status),
    pub clear_stop: function!((*mut allstop_state) -> allstop_status),
    pub stop_record: function!((*mut allstop_state, *mut *mut allstop_record) -> allstop_status),
    pub record_info: function!((*const allstop_record, *mut allstop_record_info) -> allstop_status),
    pub record_release: function!((*mut allstop_record)),
    pub thread_register: function!((*mut allstop_state, allstop_string, u32, *mut *mut allstop_thread) -> allstop_status),
    pub thread_enter: function!((*mut allstop_thread) -> allstop_status),
    pub thread_done: function!((*mut allstop_thread, *const allstop_error)),
    pub join: function!((*mut allstop_state, f64, u32) -> allstop_status),
    pub on_stop: function!((*mut allstop_state, allstop_stop_fn, *mut c_void, *mut *mut allstop_callback) -> allstop_status),
    pub callback_release: function!((*mut allstop_callback)),
    // Since 1.1
    pub create: function!((*const allstop_options, *mut *mut allstop_state) -> allstop_status),
    pub child: function!((*mut allstop_state, *const allstop_options, *mut *mut allstop_state) -> allstop_status),
    pub report_error: function!((*mut allstop_state, *const allstop_error) -> allstop_status),
    pub first_error: function!((*mut allstop_state, *mut *mut allstop_record) -> allstop_status),
    pub new_id: function!((*mut c_char, usize) -> usize),
    // Since 1.2
    pub looper_create: function!((*mut allstop_state, f64, u32, *mut *mut allstop_looper) -> allstop_status),
    pub looper_wait: function!((*mut allstop_looper) -> allstop_status),
    pub looper_release: function!((*mut allstop_looper)),
    pub queue_create: function!((*const allstop_queue_options, *mut *mut allstop_queue_state) -> allstop_status),
    pub queue_retain: function!((*mut allstop_queue_state)),
    pub queue_release: function!((*mut allstop_queue_state)),
    pub queue_enqueue: function!((*mut allstop_queue_state, *mut allstop_item, usize, f64, *mut usize) -> allstop_status),
    pub queue_dequeue: function!((*mut allstop_queue_state, *mut allstop_item, usize, f64, *mut usize) -> allstop_status),
    pub queue_close: function!((*mut allstop_queue_state, u32) -> allstop_status),
    pub queue_info: function!((*mut allstop_queue_state, *mut allstop_queue_info) -> allstop_status),
    pub item_copy: function!((*const c_void, usize, *mut allstop_item) -> allstop_status),
    // Since 1.3
    pub request_stop2: function!((*mut allstop_state, *const allstop_error, *mut i32) -> allstop_status),
    pub queue_dequeue_least: function!((*mut allstop_queue_state, *mut allstop_item, usize, usize, f64, *mut usize) -> allstop_status),
    pub suppressed_errors: function!((*mut allstop_state, *mut *mut allstop_record, usize, *mut usize) -> allstop_status),
    pub record_cause: function!((*const allstop_record, *mut *mut allstop_record) -> allstop_status),
    // Since 1.4
    pub stop_after: function!((*mut allstop_state, f64, *mut *mut allstop_deadline) -> allstop_status),
    pub deadline_release: function!((*mut allstop_deadline)),
    // Since 1.5
    pub interruptible_enter: function!((*mut allstop_state, *mut *mut allstop_interruptible) -> allstop_status),
    pub interruptible_leave: function!((*mut allstop_interruptible)),
    // Since 1.6
    pub variable_retain: function!((*mut allstop_variable_state)),
    pub variable_release: function!((*mut allstop_variable_state)),
    pub variable_info: function!((*mut allstop_variable_state, *mut allstop_variable_info) -> allstop_status),
    pub variable_read: function!((*mut allstop_variable_state, u32, *mut c_void, usize) -> allstop_status),
    pub variable_assign: function!((*mut allstop_variable_state, u32, *const c_void, usize) -> allstop_status),
    pub variable_assign_add: function!((*mut allstop_variable_state, u32, *const c_void, usize) -> allstop_status),
    // Since 1.7
    pub interruptible_is_effective: function!((*const allstop_interruptible) -> c_int),
    pub on_js_thread: function!(() -> c_int),
}

/// The offset of a member of the table, for [`has`].
#[macro_export]
macro_rules! offset_in_table {
    ($member:ident) => {{
        let table = std::mem::MaybeUninit::<$crate::allstop_table>::uninit();
        let base = table.as_ptr();
        let member = unsafe { std::ptr::addr_of!((*base).$member) };
        member as usize - base as usize
    }};
}

/// Whether the table of the installed package has the function at `offset`.
///
/// # Safety
/// `table` came with a handle.
pub unsafe fn has(table: *const allstop_table, offset: usize) -> bool {
    (*table).size as usize >= offset + std::mem::size_of::<*const c_void>()
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct allstop_coordinator {
    pub table: *const allstop_table,
    pub state: *mut allstop_state,
    pub stop_word: *const u32,
}

#[repr(C)]
pub struct allstop_capsule {
    pub size: u32,
    pub major: u32,
    pub minor: u32,
    pub kind: u32,
    pub table: *const allstop_table,
    pub state: *mut allstop_state,
}

/// One load with acquire order: what the requester wrote before the stop is visible.
///
/// # Safety
/// `coord` is a handle of which the caller owns or borrows a reference.
pub unsafe fn should_stop(coord: &allstop_coordinator) -> bool {
    (*coord.stop_word.cast::<AtomicU32>()).load(Ordering::Acquire) != 0
}
