//! The key from which reply tokens are made.

use std::fmt;
use std::io;

use super::DataDirectory;
use crate::access::fill;
use crate::{Fault, files};

/// How long the key is.
pub const TOKEN_KEY_BYTES: usize = 32;

const FILE_NAME: &str = "token.key";

/// The key of the HMAC from which reply tokens are made, the same for the life of a store: so tokens
/// need not be stored, and are the same after a restart.
#[derive(Clone)]
pub struct TokenKey {
    bytes: [u8; TOKEN_KEY_BYTES],
    new: bool,
}

impl TokenKey {
    /// The key of a data directory, made on the first start.
    pub fn open(data: &DataDirectory) -> Result<Self, Fault> {
        let path = data.path().join(FILE_NAME);
        // The hub holds the directory, so nobody else makes one at the same time.
        match path.symlink_metadata() {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let key = Self::ephemeral()?;
                files::write_private(&path, &key.bytes)?;
                return Ok(key);
            }
            Err(error) => return Err(files::cannot_read(&path, &error)),
        }
        let bytes = files::read_private(&path, TOKEN_KEY_BYTES as u64)?;
        let found = bytes.len();
        let bytes = bytes.try_into().map_err(|_| {
            Fault::file(
                &path,
                format!("It holds {found} bytes, and the key of reply tokens has {TOKEN_KEY_BYTES}."),
                "Put it back from a backup. Without one, move it away: questions that wait for an answer are then withdrawn.",
            )
        })?;
        Ok(Self { bytes, new: false })
    }

    /// A key that somebody was given.
    #[cfg(feature = "cluster")]
    pub(crate) fn given(bytes: [u8; TOKEN_KEY_BYTES]) -> Self {
        Self { bytes, new: false }
    }

    /// A key that nobody keeps.
    pub fn ephemeral() -> Result<Self, Fault> {
        let mut bytes = [0; TOKEN_KEY_BYTES];
        fill(&mut bytes)?;
        Ok(Self { bytes, new: true })
    }

    /// The key, for [`aaep_engine::Secrets`]. Never log it.
    pub fn bytes(&self) -> [u8; TOKEN_KEY_BYTES] {
        self.bytes
    }

    /// Whether it was made just now. A new key beside an old journal means that tokens which were
    /// handed out are worth nothing any more.
    pub fn is_new(&self) -> bool {
        self.new
    }
}

impl fmt::Debug for TokenKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenKey(…)")
    }
}
