//! Memory given back: the pages of the program that its start has touched and that nobody looks at
//! again.

use std::ptr;

/// Takes the pages of code and constants that were touched so far out of this process: those of
/// the loader, of relocations, flags and set-up are not needed again, and the kernel maps 64 KiB
/// around each that is (see `Documentation/filesystems/proc.rst`, RssFile). What is needed again
/// comes back from the page cache, a few dozen minor faults once. Nothing is written to these
/// pages, so nothing can be lost; where the kernel refuses, they stay. madvise(2), MADV_DONTNEED.
pub fn give_back() {
    // SAFETY: the callback keeps to what dl_iterate_phdr(3) hands it, and takes no data.
    unsafe { libc::dl_iterate_phdr(Some(give_back_of), ptr::null_mut()) };
}

/// Gives back the parts of one loaded object that may not be written to.
unsafe extern "C" fn give_back_of(
    info: *mut libc::dl_phdr_info,
    _size: libc::size_t,
    _data: *mut libc::c_void,
) -> libc::c_int {
    // SAFETY: the loader hands out a valid record for the time of this call.
    let info = unsafe { &*info };
    // SAFETY: the record's headers are an array of as many entries.
    let headers =
        unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    for header in headers {
        let whole = |bytes: u64| usize::try_from(bytes).unwrap_or(0);
        if header.p_type != libc::PT_LOAD || header.p_flags & libc::PF_W != 0 {
            continue;
        }
        let from = whole(info.dlpi_addr.wrapping_add(header.p_vaddr));
        let (first, end) = (from.next_multiple_of(PAGE_BYTES), from + whole(header.p_memsz));
        let len = (end - end % PAGE_BYTES).saturating_sub(first);
        if len > 0 {
            // SAFETY: whole pages of a private mapping of a file that is never written to: its
            // bytes come back unchanged at the next touch.
            unsafe { libc::madvise(first as *mut libc::c_void, len, libc::MADV_DONTNEED) };
        }
    }
    0
}

/// The largest page of the systems that execd is built for: parts of a page are left alone.
const PAGE_BYTES: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_goes_on_after_it() {
        give_back();
        let text: String = (0..100).map(|number| number.to_string()).collect();
        give_back();
        assert_eq!(text.len(), 190);
    }
}
