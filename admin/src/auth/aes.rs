//! Passwords that clients encrypt.

use aws_lc_rs::cipher::UnboundCipherKey;
use aws_lc_rs::cipher::{AES_128, AES_192, AES_256, DecryptionContext, PaddedBlockDecryptingKey};
use base64::{Engine as _, engine::general_purpose::STANDARD};

/// Decrypts passwords with the configured AES key, CBC and PKCS#7 padding.
#[derive(Clone)]
pub struct PasswordCipher {
    key: Vec<u8>,
    iv: [u8; 16],
}

impl std::fmt::Debug for PasswordCipher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PasswordCipher").finish_non_exhaustive()
    }
}

impl PasswordCipher {
    /// A cipher of the given key (16, 24 or 32 bytes) and initial vector (16 bytes).
    ///
    /// # Errors
    /// Names the length that was expected.
    pub fn new(key: &str, iv: &str) -> Result<Self, String> {
        if !matches!(key.len(), 16 | 24 | 32) {
            return Err(format!("aes key has {} bytes, expected 16, 24 or 32", key.len()));
        }
        let iv = iv
            .as_bytes()
            .try_into()
            .map_err(|_| format!("aes iv has {} bytes, expected 16", iv.len()))?;
        Ok(Self { key: key.as_bytes().to_vec(), iv })
    }

    /// The plain password: decrypted if it looks encrypted and can be, else as it is.
    #[must_use]
    pub fn open(&self, password: String) -> String {
        self.decrypt(&password).unwrap_or(password)
    }

    fn decrypt(&self, password: &str) -> Option<String> {
        let mut bytes = STANDARD.decode(password.trim()).ok()?;
        if bytes.is_empty() || bytes.len() % 16 != 0 {
            return None;
        }
        let algorithm = match self.key.len() {
            16 => &AES_128,
            24 => &AES_192,
            _ => &AES_256,
        };
        let key = UnboundCipherKey::new(algorithm, &self.key).ok()?;
        let key = PaddedBlockDecryptingKey::cbc_pkcs7(key).ok()?;
        let context = DecryptionContext::Iv128(self.iv.into());
        let plain = key.decrypt(&mut bytes, context).ok()?;
        String::from_utf8(plain.to_vec()).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::PasswordCipher;

    #[test]
    fn encrypted_passwords_are_opened_and_plain_ones_kept() {
        let cipher = PasswordCipher::new("2095132720951327", "6075877187097700").unwrap();
        // Made with OpenSSL: aes-128-cbc of `123456`.
        assert_eq!(cipher.open("bbiB8zbUo3z3oA0VqEB/IA==".to_owned()), "123456");
        for plain in ["123456", "", "not base64!", "AAAAAAAAAAAAAAAAAAAAAA=="] {
            assert_eq!(cipher.open(plain.to_owned()), plain);
        }
    }

    #[test]
    fn lengths_are_checked() {
        assert!(PasswordCipher::new("short", "6075877187097700").is_err());
        assert!(PasswordCipher::new("2095132720951327", "short").is_err());
    }
}
