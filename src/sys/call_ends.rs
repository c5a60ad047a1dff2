//! In how long a system call of another process ends by itself, because it sleeps or has a
//! timeout: told by its arguments, and by the time that these point to.

use super::clock;
use crate::limits::{NS_PER_MS, NS_PER_S};

/// Bytes of a time, see timespec(3type).
const TIME_BYTES: usize = size_of::<libc::timespec>();
/// Nanoseconds of the smaller unit of a timespec, and of a timeval.
const NANOSECOND: u64 = 1;
#[cfg(target_arch = "x86_64")]
const MICROSECOND: u64 = 1_000;

/// What reads bytes of the other process's memory, where it can be read.
pub type Memory<'a> = &'a dyn Fn(u64, usize) -> Option<Vec<u8>>;

/// In how long the call of this number ends by itself at the latest: when a time that is left
/// began to run nobody knows. None: it may last for ever, or its end can't be told.
pub fn ends_in_ns(number: i64, args: &[u64; 6], memory: Memory<'_>) -> Option<u64> {
    let after = |at| time_ns(at, NANOSECOND, memory);
    let until = |clock, at| Some(after(at)?.saturating_sub(known_clock_ns(clock)?));
    match number {
        libc::SYS_nanosleep => after(args[0]),
        libc::SYS_clock_nanosleep if low(args[1]) & libc::TIMER_ABSTIME == 0 => after(args[2]),
        libc::SYS_clock_nanosleep => until(low(args[0]), args[2]),
        libc::SYS_futex => match low(args[1]) & !FUTEX_FLAGS {
            libc::FUTEX_WAIT => after(args[3]),
            libc::FUTEX_WAIT_BITSET if low(args[1]) & libc::FUTEX_CLOCK_REALTIME != 0 => {
                until(libc::CLOCK_REALTIME, args[3])
            }
            libc::FUTEX_WAIT_BITSET => until(libc::CLOCK_MONOTONIC, args[3]),
            _ => None,
        },
        libc::SYS_pselect6 => after(args[4]),
        libc::SYS_ppoll | libc::SYS_rt_sigtimedwait => after(args[2]),
        libc::SYS_epoll_pwait => milliseconds(args[3]),
        libc::SYS_epoll_pwait2 => after(args[3]),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_select => time_ns(args[4], MICROSECOND, memory),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_poll => milliseconds(args[2]),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_epoll_wait => milliseconds(args[3]),
        _ => None,
    }
}

/// What of futex(2)'s operation is no operation.
pub const FUTEX_FLAGS: i32 = libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME;

/// The lower half of an argument: descriptors and timeouts are ints.
#[allow(clippy::cast_possible_truncation)] // The kernel takes no more of it either.
pub fn low(arg: u64) -> i32 {
    (arg as u32).cast_signed()
}

/// The time at an address; `unit_ns`: what its smaller half counts.
fn time_ns(at: u64, unit_ns: u64, memory: Memory<'_>) -> Option<u64> {
    if at == 0 {
        return None;
    }
    let bytes = memory(at, TIME_BYTES)?;
    let half = |from: usize| {
        let half = bytes.get(from..from + TIME_BYTES / 2)?;
        u64::try_from(i64::from_ne_bytes(half.try_into().ok()?)).ok()
    };
    let (seconds, rest) = (half(0)?, half(TIME_BYTES / 2)?);
    Some(seconds.saturating_mul(NS_PER_S).saturating_add(rest.saturating_mul(unit_ns)))
}

/// The timeout of poll(2) and epoll_wait(2); negative: none.
fn milliseconds(arg: u64) -> Option<u64> {
    Some(u64::try_from(low(arg)).ok()? * NS_PER_MS)
}

/// What a clock says, where it is one of those that say the same to every process.
fn known_clock_ns(clock: i32) -> Option<u64> {
    let known =
        [libc::CLOCK_MONOTONIC, libc::CLOCK_REALTIME, libc::CLOCK_BOOTTIME, libc::CLOCK_TAI];
    known.contains(&clock).then(|| clock::read_ns(clock))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A memory in which a time stands at 7, and nothing elsewhere.
    fn told(number: i64, args: [u64; 6], seconds: i64, rest: i64) -> Option<u64> {
        let bytes = [seconds.to_ne_bytes(), rest.to_ne_bytes()].concat();
        ends_in_ns(number, &args, &|at, length| {
            assert_eq!(length, TIME_BYTES);
            (at == 7).then(|| bytes.clone())
        })
    }

    const ARG: fn(i32) -> u64 = |arg| u64::from(arg.cast_unsigned());

    #[test]
    fn sleeps_and_timeouts_are_told_by_their_arguments() {
        let sleep = |args| told(libc::SYS_clock_nanosleep, args, 3, 5);
        assert_eq!(sleep([0, 0, 7, 0, 0, 0]), Some(3 * NS_PER_S + 5));
        assert_eq!(told(libc::SYS_nanosleep, [7, 0, 0, 0, 0, 0], 1, 0), Some(NS_PER_S));
        assert_eq!(sleep([0, 0, 8, 0, 0, 0]), None, "memory that can't be read");
        let epoll = |arg| told(libc::SYS_epoll_pwait, [3, 7, 9, arg, 0, 8], 0, 0);
        assert_eq!(epoll(0x1fa2), Some(8_098 * NS_PER_MS));
        assert_eq!(epoll(ARG(-1)), None);
        assert_eq!(told(libc::SYS_pselect6, [1, 0, 0, 0, 7, 0], 2, 0), Some(2 * NS_PER_S));
        assert_eq!(told(libc::SYS_pselect6, [1, 0, 0, 0, 0, 0], 2, 0), None, "without a timeout");
        assert_eq!(told(libc::SYS_ppoll, [1, 1, 7, 0, 0, 0], 2, 0), Some(2 * NS_PER_S));
        assert_eq!(told(libc::SYS_read, [7; 6], 2, 0), None);
        assert_eq!(sleep([0, 0, 7, 0, 0, 0]).zip(told(libc::SYS_nanosleep, [7; 6], -1, 0)), None);
        let far = told(libc::SYS_nanosleep, [7; 6], i64::MAX, 0);
        assert_eq!(far, Some(u64::MAX), "longer than there is time");
    }

    #[test]
    fn a_time_of_a_clock_is_as_far_away_as_the_clock_says() {
        let in_a_minute = |clock| {
            let at_ns = clock::read_ns(clock) + 60 * NS_PER_S;
            i64::try_from(at_ns / NS_PER_S).unwrap()
        };
        let minute = 58 * NS_PER_S..=60 * NS_PER_S;
        let abs = ARG(libc::TIMER_ABSTIME);
        for clock in [libc::CLOCK_MONOTONIC, libc::CLOCK_REALTIME] {
            let args = [ARG(clock), abs, 7, 0, 0, 0];
            let told = told(libc::SYS_clock_nanosleep, args, in_a_minute(clock), 0).unwrap();
            assert!(minute.contains(&told), "{told}");
        }
        let args = [ARG(libc::CLOCK_THREAD_CPUTIME_ID), abs, 7, 0, 0, 0];
        assert_eq!(told(libc::SYS_clock_nanosleep, args, 1, 0), None, "its own clock");
        assert_eq!(told(libc::SYS_clock_nanosleep, [1, abs, 7, 0, 0, 0], 0, 0), Some(0), "over");
        let futex = |operation: i32, seconds| {
            told(libc::SYS_futex, [1, ARG(operation), 0, 7, 0, 0], seconds, 0)
        };
        assert_eq!(futex(libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG, 3), Some(3 * NS_PER_S));
        let until = futex(libc::FUTEX_WAIT_BITSET, in_a_minute(libc::CLOCK_MONOTONIC)).unwrap();
        assert!(minute.contains(&until), "{until}");
        let by_wall = libc::FUTEX_WAIT_BITSET | libc::FUTEX_CLOCK_REALTIME;
        let until = futex(by_wall, in_a_minute(libc::CLOCK_REALTIME)).unwrap();
        assert!(minute.contains(&until), "{until}");
        assert_eq!(futex(libc::FUTEX_WAKE, 3), None);
    }
}
