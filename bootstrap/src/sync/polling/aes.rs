//! Passwords encrypted on their way to an admin that has the key.
//!
//! Source: ShenYu 2.7.1, `shenyu.sync.http.aesSecretKey` and `aesSecretIv`.

use aws_lc_rs::cipher::{
    AES_128, AES_192, AES_256, EncryptionContext, PaddedBlockEncryptingKey, UnboundCipherKey,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The text, encrypted by AES-CBC with PKCS#7 padding, in Base64.
///
/// # Errors
/// Key or initial vector have a length that cannot be.
pub(super) fn encrypted(text: &str, key: &str, iv: &str) -> Result<String, String> {
    let algorithm = match key.len() {
        16 => &AES_128,
        24 => &AES_192,
        32 => &AES_256,
        bytes => return Err(format!("the key has {bytes} bytes, expected 16, 24 or 32")),
    };
    let vector: [u8; 16] = iv
        .as_bytes()
        .try_into()
        .map_err(|_| format!("the initial vector has {} bytes, expected 16", iv.len()))?;
    let failed = |_| "AES is not to be had".to_owned();
    let key = UnboundCipherKey::new(algorithm, key.as_bytes()).map_err(failed)?;
    let key = PaddedBlockEncryptingKey::cbc_pkcs7(key).map_err(failed)?;
    let mut bytes = text.as_bytes().to_vec();
    let context = EncryptionContext::Iv128(vector.into());
    key.less_safe_encrypt(&mut bytes, context).map_err(failed)?;
    Ok(STANDARD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::encrypted;

    #[test]
    fn a_password_is_encrypted_as_the_admin_opens_it() {
        // Made with OpenSSL: aes-128-cbc of `123456`.
        let text = encrypted("123456", "2095132720951327", "6075877187097700");
        assert_eq!(text.as_deref(), Ok("bbiB8zbUo3z3oA0VqEB/IA=="));
    }

    #[test]
    fn wrong_lengths_are_told_without_the_values() {
        let error = encrypted("x", "short-secret", "6075877187097700").unwrap_err();
        assert_eq!(error, "the key has 12 bytes, expected 16, 24 or 32");
        let error = encrypted("x", "2095132720951327", "vector").unwrap_err();
        assert_eq!(error, "the initial vector has 6 bytes, expected 16");
    }
}
