//! A file that one process holds at a time.
#![allow(clippy::disallowed_methods)] // this is a file

use std::fs::{File, TryLockError};

/// The lock on a file, given back when this is dropped or the process ends.
///
/// It is given back by name, not by closing the file: a program that is just being started may hold a
/// copy of every open file for a moment, and would keep the lock with it.
#[derive(Debug)]
pub struct Lock(File);

impl Lock {
    /// Takes the lock, or gives the file back with what stood in the way.
    pub fn take(file: File) -> Result<Self, (File, TryLockError)> {
        match file.try_lock() {
            Ok(()) => Ok(Self(file)),
            Err(error) => Err((file, error)),
        }
    }

    /// The file.
    pub fn file(&mut self) -> &mut File {
        &mut self.0
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // If this fails, closing the file gives it back.
        let _ = self.0.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_of_the_file_does_not_keep_the_lock() {
        let place = tempfile::tempdir().unwrap();
        let open = || File::create(place.path().join("lock")).unwrap();
        let mut held = Lock::take(open()).unwrap();
        let copy = held.file().try_clone().unwrap();
        assert!(matches!(Lock::take(open()), Err((_, TryLockError::WouldBlock))));
        drop(held);
        Lock::take(open()).unwrap();
        drop(copy);
    }
}
