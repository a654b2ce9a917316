//! How a catalog's store is reached, from the catalog's properties.

use std::collections::BTreeMap;
use std::fmt;

use crate::error::FileError;

const ENDPOINT: &str = "s3.endpoint";
const REGION: &str = "s3.region";
const CLIENT_REGION: &str = "client.region";
const ACCESS_KEY_ID: &str = "s3.access-key-id";
const SECRET_ACCESS_KEY: &str = "s3.secret-access-key";
const SESSION_TOKEN: &str = "s3.session-token";
const PATH_STYLE_ACCESS: &str = "s3.path-style-access";
const VEND_CREDENTIALS: &str = "vend-credentials";

/// Keys that go to a client only on its request for credentials, and never into a log.
const SECRET_KEYS: [&str; 3] = [ACCESS_KEY_ID, SECRET_ACCESS_KEY, SESSION_TOKEN];

/// Static keys of an S3 account.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct StaticKeys {
    pub(crate) access_key_id: String,
    pub(crate) secret_access_key: String,
    pub(crate) session_token: Option<String>,
}

/// Storage settings of one catalog. The default reaches local folders, and S3 with what the
/// server's own environment gives (`AWS_*` variables, web identity, instance role).
///
/// | property | meaning |
/// |---|---|
/// | `s3.endpoint` | `http://` or `https://` address of the store; absent: AWS, or without static keys what the server's environment says |
/// | `s3.region`, or `client.region` | region, by default `us-east-1` |
/// | `s3.access-key-id`, `s3.secret-access-key`, `s3.session-token` | static keys; absent: the server's environment |
/// | `s3.path-style-access` | `true` (default): the bucket is in the path; `false`: in the host name |
/// | `vend-credentials` | `true`: clients that ask for credentials get the static keys |
///
/// Other `s3.` properties are refused, so that a misspelt one doesn't stay unnoticed. Properties
/// without that prefix aren't looked at.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct StorageSettings {
    pub(crate) endpoint: Option<String>,
    pub(crate) region: Option<String>,
    pub(crate) keys: Option<StaticKeys>,
    pub(crate) path_style_access: Option<bool>,
    vend_credentials: bool,
}

impl StorageSettings {
    /// Reads the settings from a catalog's properties. Errors name the property, never its value
    /// if that is a secret.
    pub fn from_properties<'a, K, V, I>(properties: I) -> Result<Self, FileError>
    where
        K: AsRef<str> + 'a,
        V: AsRef<str> + 'a,
        I: IntoIterator<Item = (&'a K, &'a V)>,
    {
        let mut settings = Self::default();
        let mut client_region = None;
        let (mut access_key_id, mut secret_access_key, mut session_token) = (None, None, None);
        for (key, value) in properties {
            let (key, value) = (key.as_ref(), value.as_ref());
            match key {
                ENDPOINT => settings.endpoint = Some(endpoint(value)?),
                REGION => settings.region = Some(not_empty(key, value)?),
                CLIENT_REGION => client_region = Some(not_empty(key, value)?),
                ACCESS_KEY_ID => access_key_id = Some(not_empty(key, value)?),
                SECRET_ACCESS_KEY => secret_access_key = Some(not_empty(key, value)?),
                SESSION_TOKEN => session_token = Some(not_empty(key, value)?),
                PATH_STYLE_ACCESS => settings.path_style_access = Some(boolean(key, value)?),
                VEND_CREDENTIALS => settings.vend_credentials = boolean(key, value)?,
                _ if key.starts_with("s3.") => {
                    let why = format!("unknown property '{key}'");
                    return Err(FileError::invalid_settings(why));
                }
                _ => {}
            }
        }
        settings.region = settings.region.or(client_region);
        settings.keys = static_keys(access_key_id, secret_access_key, session_token)?;
        if settings.vend_credentials && settings.keys.is_none() {
            let why =
                format!("'{VEND_CREDENTIALS}' needs '{ACCESS_KEY_ID}' and '{SECRET_ACCESS_KEY}'");
            return Err(FileError::invalid_settings(why));
        }
        Ok(settings)
    }

    /// Whether the property `key` holds a secret that must be masked wherever it is shown.
    pub fn is_secret(key: &str) -> bool {
        SECRET_KEYS.contains(&key)
    }

    /// What every client may be told in a table's `config`: where the store is and how to address
    /// it. Never a secret, whatever `vend-credentials` says. The region is given under both names
    /// that clients read.
    pub fn client_config(&self) -> BTreeMap<String, String> {
        let mut config = BTreeMap::new();
        if let Some(endpoint) = &self.endpoint {
            config.insert(ENDPOINT.to_owned(), endpoint.clone());
            config.insert(PATH_STYLE_ACCESS.to_owned(), self.path_style().to_string());
        } else if let Some(path_style_access) = self.path_style_access {
            config.insert(PATH_STYLE_ACCESS.to_owned(), path_style_access.to_string());
        }
        if let Some(region) = &self.region {
            config.insert(REGION.to_owned(), region.clone());
            config.insert(CLIENT_REGION.to_owned(), region.clone());
        }
        config
    }

    /// The static keys, for a client that asked for credentials; `None` unless the catalog has
    /// `vend-credentials=true`. They are the catalog's own keys with all their rights and no end:
    /// the operator who sets that property says that every client of the catalog may have them.
    pub fn credentials(&self) -> Option<BTreeMap<String, String>> {
        let keys = self.keys.as_ref().filter(|_| self.vend_credentials)?;
        let mut credentials = BTreeMap::from([
            (ACCESS_KEY_ID.to_owned(), keys.access_key_id.clone()),
            (SECRET_ACCESS_KEY.to_owned(), keys.secret_access_key.clone()),
        ]);
        if let Some(session_token) = &keys.session_token {
            credentials.insert(SESSION_TOKEN.to_owned(), session_token.clone());
        }
        Some(credentials)
    }

    /// Whether requests to an endpoint of the catalog's choice would be signed with credentials
    /// from the server's environment.
    pub fn sends_ambient_keys_elsewhere(&self) -> bool {
        self.endpoint.is_some() && self.keys.is_none()
    }

    /// Whether the bucket is addressed in the path.
    pub(crate) fn path_style(&self) -> bool {
        self.path_style_access.unwrap_or(true)
    }
}

fn static_keys(
    access_key_id: Option<String>,
    secret_access_key: Option<String>,
    session_token: Option<String>,
) -> Result<Option<StaticKeys>, FileError> {
    match (access_key_id, secret_access_key) {
        (Some(access_key_id), Some(secret_access_key)) => Ok(Some(StaticKeys {
            access_key_id,
            secret_access_key,
            session_token,
        })),
        (None, None) if session_token.is_none() => Ok(None),
        _ => {
            let why = format!(
                "'{ACCESS_KEY_ID}' and '{SECRET_ACCESS_KEY}' belong together, and '{SESSION_TOKEN}' needs both"
            );
            Err(FileError::invalid_settings(why))
        }
    }
}

fn not_empty(key: &str, value: &str) -> Result<String, FileError> {
    if value.is_empty() || value.chars().any(char::is_control) {
        let why = format!("'{key}' is empty or has control characters");
        return Err(FileError::invalid_settings(why));
    }
    Ok(value.to_owned())
}

fn boolean(key: &str, value: &str) -> Result<bool, FileError> {
    match value.to_ascii_lowercase().as_str() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(FileError::invalid_settings(format!(
            "'{key}' must be true or false"
        ))),
    }
}

fn endpoint(value: &str) -> Result<String, FileError> {
    let host_and_path = value
        .strip_prefix("http://")
        .or_else(|| value.strip_prefix("https://"))
        .unwrap_or_default();
    let has_host = !host_and_path.is_empty() && !host_and_path.starts_with([':', '/']);
    let is_plain = host_and_path
        .chars()
        .all(|character| !character.is_whitespace() && !character.is_control())
        && !host_and_path.contains(['@', '?', '#']);
    if !has_host || !is_plain {
        let why = format!(
            "'{ENDPOINT}' must be http:// or https:// with a host, without user, query or fragment"
        );
        return Err(FileError::invalid_settings(why));
    }
    Ok(value.trim_end_matches('/').to_owned())
}

impl fmt::Debug for StorageSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StorageSettings")
            .field("endpoint", &self.endpoint)
            .field("region", &self.region)
            .field("keys", &self.keys.as_ref().map(|_| "***"))
            .field("path_style_access", &self.path_style_access)
            .field("vend_credentials", &self.vend_credentials)
            .finish()
    }
}

impl fmt::Display for StorageSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown: Vec<String> = self
            .client_config()
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        if self.keys.is_some() {
            shown.push(format!("{SECRET_ACCESS_KEY}=***"));
        }
        if self.vend_credentials {
            shown.push(format!("{VEND_CREDENTIALS}=true"));
        }
        f.write_str(&shown.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(properties: &[(&str, &str)]) -> Result<StorageSettings, FileError> {
        let map: BTreeMap<String, String> = properties
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect();
        StorageSettings::from_properties(&map)
    }

    const KEYS: [(&str, &str); 3] = [
        ("s3.access-key-id", "AKIDTOPSECRET"),
        ("s3.secret-access-key", "sssTOPSECRET"),
        ("s3.session-token", "tttTOPSECRET"),
    ];

    #[test]
    fn unknown_s3_properties_are_named_and_others_ignored() {
        let error = read(&[("s3.end-point", "http://x")]).unwrap_err();
        assert!(error.to_string().contains("s3.end-point"), "{error}");
        assert_eq!(read(&[("owner", "x")]).unwrap(), StorageSettings::default());
    }

    #[test]
    fn secrets_never_show_unless_vending_is_on() {
        let mut properties = vec![
            ("s3.endpoint", "http://127.0.0.1:9000/"),
            ("s3.region", "eu-west-1"),
        ];
        properties.extend(KEYS);
        let settings = read(&properties).unwrap();
        let shown = format!("{settings} {settings:?} {:?}", settings.client_config());
        assert!(!shown.contains("TOPSECRET"), "{shown}");
        assert_eq!(settings.credentials(), None);
        assert_eq!(
            settings.client_config()["s3.endpoint"],
            "http://127.0.0.1:9000"
        );
        assert_eq!(settings.client_config()["s3.path-style-access"], "true");
        assert_eq!(settings.client_config()["client.region"], "eu-west-1");

        properties.push(("vend-credentials", "true"));
        let vending = read(&properties).unwrap();
        let shown = format!("{vending} {vending:?} {:?}", vending.client_config());
        assert!(!shown.contains("TOPSECRET"), "{shown}");
        assert_eq!(vending.credentials().unwrap().len(), 3);
    }

    #[test]
    fn halves_and_nonsense_are_refused_without_their_values() {
        let refused: [&[(&str, &str)]; 9] = [
            &KEYS[..1],
            &KEYS[1..2],
            &KEYS[2..],
            &[("vend-credentials", "true")],
            &[("vend-credentials", "TOPSECRET")],
            &[("s3.path-style-access", "TOPSECRET")],
            &[("s3.endpoint", "ftp://TOPSECRET")],
            &[("s3.endpoint", "http://user:TOPSECRET@host")],
            &[
                ("s3.access-key-id", ""),
                ("s3.secret-access-key", "TOPSECRET"),
            ],
        ];
        for properties in refused {
            let error = read(properties).unwrap_err();
            assert!(
                !format!("{error} {error:?}").contains("TOPSECRET"),
                "{error:?}"
            );
        }
    }
}
