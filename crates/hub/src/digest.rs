//! The two checksums by which the hub names files: SHA-256 for large ones, the hash of a git blob for small ones.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY, SHA256};

use crate::error::HubError;

/// A checksum that a file must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Checksum {
    /// SHA-256 of the content, in hexadecimal.
    Sha256(String),
    /// SHA-1 of `blob <bytes>\0` and the content, in hexadecimal: git's own name of it. Guards against accidents, not against attacks.
    Git(String),
}

impl Checksum {
    /// The checksum that an entity tag is, told by its length; `None` where it is some other word.
    pub(crate) fn of_tag(tag: &str) -> Option<Self> {
        let hexadecimal = tag.chars().all(|c| c.is_ascii_hexdigit());
        match tag.len() {
            64 if hexadecimal => Some(Self::Sha256(tag.to_ascii_lowercase())),
            40 if hexadecimal => Some(Self::Git(tag.to_ascii_lowercase())),
            _ => None,
        }
    }

    /// The checksum that is wanted, in words.
    pub(crate) fn wanted(&self) -> String {
        match self {
            Self::Sha256(hash) => format!("SHA-256 {hash}"),
            Self::Git(hash) => format!("git hash {hash}"),
        }
    }

    /// The checksum of this kind that `path` has.
    pub(crate) fn found(&self, path: &Path) -> Result<Self, HubError> {
        let read = |source| HubError::io(path, "read it", source);
        let mut file = File::open(path).map_err(read)?;
        let mut context = match self {
            Self::Sha256(_) => Context::new(&SHA256),
            Self::Git(_) => {
                let mut context = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
                context.update(format!("blob {}\0", file.metadata().map_err(read)?.len()).as_bytes());
                context
            }
        };
        let mut buffer = vec![0; 1 << 17];
        loop {
            match file.read(&mut buffer).map_err(read)? {
                0 => break,
                bytes => context.update(&buffer[..bytes]),
            }
        }
        let hash: String = context.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(match self {
            Self::Sha256(_) => Self::Sha256(hash),
            Self::Git(_) => Self::Git(hash),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_sha256sum_and_git_hash_object() {
        let check = |content: &str, tag: &str| {
            let folder = tempfile::tempdir().expect("a temporary folder");
            let path = folder.path().join("file");
            std::fs::write(&path, content).expect("written");
            let wanted = Checksum::of_tag(tag).expect("a checksum");
            assert_eq!(wanted.found(&path).expect("readable"), wanted);
        };
        check("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"); // FIPS 180-2, appendix B.1
        check("", "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"); // git's empty blob
        check("hello\n", "ce013625030ba8dba906f756967f9e9ca394464a"); // git hash-object
    }

    #[test]
    fn another_word_is_no_checksum() {
        for tag in ["", "abc", "zz13625030ba8dba906f756967f9e9ca394464a0", "686897696a7c876b7e-2"] {
            assert_eq!(Checksum::of_tag(tag), None, "{tag}");
        }
    }
}
