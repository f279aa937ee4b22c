use crate::{sys, Coordinator};
use std::fmt;
use std::ptr;

/// Why a call has failed: a status of allstop.h.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Status(i32);

impl Status {
    pub const CANCELLED: Self = Self(sys::ALLSTOP_CANCELLED);
    pub const INVALID_ARGUMENT: Self = Self(sys::ALLSTOP_INVALID_ARGUMENT);
    pub const DEADLINE_EXCEEDED: Self = Self(sys::ALLSTOP_DEADLINE_EXCEEDED);
    pub const RESOURCE_EXHAUSTED: Self = Self(sys::ALLSTOP_RESOURCE_EXHAUSTED);
    pub const FAILED_PRECONDITION: Self = Self(sys::ALLSTOP_FAILED_PRECONDITION);
    pub const OUT_OF_RANGE: Self = Self(sys::ALLSTOP_OUT_OF_RANGE);
    pub const UNAVAILABLE: Self = Self(sys::ALLSTOP_UNAVAILABLE);
    pub const INVALID_HANDLE: Self = Self(sys::ALLSTOP_INVALID_HANDLE);
    pub const SELF_JOIN: Self = Self(sys::ALLSTOP_SELF_JOIN);
    pub const STRAGGLERS: Self = Self(sys::ALLSTOP_STRAGGLERS);
    pub const STOPPED_BY_ERROR: Self = Self(sys::ALLSTOP_STOPPED_BY_ERROR);

    /// The number, as in allstop.h.
    pub const fn code(self) -> i32 {
        self.0
    }

    /// The status of a number of allstop.h that is not ALLSTOP_OK.
    pub const fn from_code(code: i32) -> Self {
        Self(code)
    }

    pub(crate) fn check(code: i32) -> Result<(), Self> {
        if code == sys::ALLSTOP_OK {
            return Ok(());
        }
        Err(Self(code))
    }

    /// The `code` of the JavaScript error, as "ERR_ALLSTOP_INVALID_HANDLE".
    pub fn name(self) -> &'static str {
        match self {
            Self::CANCELLED => "ERR_ALLSTOP_CANCELLED",
            Self::INVALID_ARGUMENT => "ERR_ALLSTOP_INVALID_ARGUMENT",
            Self::DEADLINE_EXCEEDED => "ERR_ALLSTOP_DEADLINE_EXCEEDED",
            Self::RESOURCE_EXHAUSTED => "ERR_ALLSTOP_RESOURCE_EXHAUSTED",
            Self::FAILED_PRECONDITION => "ERR_ALLSTOP_FAILED_PRECONDITION",
            Self::OUT_OF_RANGE => "ERR_ALLSTOP_OUT_OF_RANGE",
            Self::UNAVAILABLE => "ERR_ALLSTOP_UNAVAILABLE",
            Self::INVALID_HANDLE => "ERR_ALLSTOP_INVALID_HANDLE",
            Self::SELF_JOIN => "ERR_ALLSTOP_SELF_JOIN",
            Self::STRAGGLERS => "ERR_ALLSTOP_STRAGGLERS",
            Self::STOPPED_BY_ERROR => "ERR_ALLSTOP_STOPPED_BY_ERROR",
            _ => "ERR_ALLSTOP_STATUS",
        }
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Status({}, {})", self.0, self.name())
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (status {})", self.name(), self.0)
    }
}

impl std::error::Error for Status {}

/// An error that you report or read. An empty field means that the error has none. `name` selects
/// the class of the error in JavaScript, NativeError by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Error {
    pub name: String,
    pub message: String,
    pub code: String,
    pub stack: String,
    pub native_type: String,
    /// Set in an error that was read: an error that is reported again is known by it.
    pub id: String,
}

impl Error {
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            ..Self::default()
        }
    }

    pub(crate) fn with_view<R>(&self, use_view: impl FnOnce(*const sys::allstop_error) -> R) -> R {
        let of = sys::allstop_string::of;
        let view = sys::allstop_error {
            size: std::mem::size_of::<sys::allstop_error>() as u32,
            error_number: 0,
            name: of(&self.name),
            message: of(&self.message),
            code: of(&self.code),
            stack: of(&self.stack),
            native_type: of(&self.native_type),
            id: of(&self.id),
            cause: ptr::null(),
            encoded: of(""),
        };
        use_view(&view)
    }

    pub(crate) fn of_stop(coord: &Coordinator) -> Option<Self> {
        let table = coord.table();
        let handle = coord.as_raw();
        let mut record = ptr::null_mut();
        // SAFETY: coord owns a reference; `has` says whether the table has the function; the record
        // is released below, after its strings are read.
        unsafe {
            (table.stop_record)(handle.state, &mut record);
            if record.is_null() {
                return None;
            }
            let mut first = ptr::null_mut();
            if sys::has(handle.table, sys::offset_in_table!(first_error)) {
                (table.first_error)(handle.state, &mut first);
            }
            if !first.is_null() {
                (table.record_release)(record);
                record = first;
            }
            let mut info = std::mem::zeroed::<sys::allstop_record_info>();
            info.size = std::mem::size_of::<sys::allstop_record_info>() as u32;
            (table.record_info)(record, &mut info);
            let error = (info.kind != sys::ALLSTOP_STOP_PLAIN).then(|| Self {
                name: info.name.to_text(),
                message: info.message.to_text(),
                code: info.code.to_text(),
                stack: info.stack.to_text(),
                native_type: info.native_type.to_text(),
                id: info.id.to_text(),
            });
            (table.record_release)(record);
            error
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if self.name.is_empty() {
            "NativeError"
        } else {
            &self.name
        };
        write!(f, "{name}: {}", self.message)
    }
}

impl std::error::Error for Error {}
