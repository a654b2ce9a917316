//! Location, properties and encryption keys.

use std::collections::BTreeMap;

use super::Draft;
use crate::create::{
    FORMAT_VERSION_PROPERTY, check_not_reserved, checked_location, take_format_version,
};
use crate::error::UpdateError;
use crate::statistics::EncryptedKey;

/// Property that names the key of an encrypted table; files that are there can only be read with that one.
const ENCRYPTION_KEY_PROPERTY: &str = "encryption.key-id";

impl Draft<'_> {
    pub(super) fn set_location(&mut self, location: &str) -> Result<(), UpdateError> {
        self.metadata.location = checked_location(location)?;
        Ok(())
    }

    /// Sets properties. `format-version` among them upgrades the table and isn't kept, as in the reference
    /// implementation.
    pub(super) fn set_properties(
        &mut self,
        updates: &BTreeMap<String, String>,
    ) -> Result<(), UpdateError> {
        check_not_reserved(updates.keys())?;
        if let Some(key_id) = updates.get(ENCRYPTION_KEY_PROPERTY) {
            self.check_encryption_key(Some(key_id))?;
        }
        let mut updates = updates.clone();
        if let Some(format_version) = take_format_version(&mut updates)? {
            self.upgrade_format_version(format_version)?;
        }
        self.metadata.properties.extend(updates);
        Ok(())
    }

    pub(super) fn remove_properties(&mut self, removals: &[String]) -> Result<(), UpdateError> {
        for name in removals {
            if name == ENCRYPTION_KEY_PROPERTY {
                self.check_encryption_key(None)?;
            }
            if name == FORMAT_VERSION_PROPERTY {
                continue;
            }
            self.metadata.properties.remove(name);
        }
        Ok(())
    }

    fn check_encryption_key(&self, wanted: Option<&String>) -> Result<(), UpdateError> {
        let Some(base) = self.base else {
            return Ok(());
        };
        if base.properties.get(ENCRYPTION_KEY_PROPERTY) == wanted {
            return Ok(());
        }
        Err(UpdateError::invalid(format!(
            "the property {ENCRYPTION_KEY_PROPERTY} can't change once the table is created; create a new table"
        )))
    }

    pub(super) fn add_encryption_key(&mut self, key: &EncryptedKey) -> Result<(), UpdateError> {
        let id = key.key_id();
        let format_version = self.metadata.format_version;
        if format_version < 3 {
            return Err(UpdateError::invalid(format!(
                "add-encryption-key: encryption keys need format-version 3, the table has {format_version}; upgrade \
                 the table first"
            )));
        }
        match self
            .metadata
            .encryption_keys
            .iter()
            .find(|known| known.key_id() == id)
        {
            Some(known) if known == key => Ok(()),
            Some(_) => Err(UpdateError::invalid(format!(
                "add-encryption-key: the table has another key with the id '{id}'; choose another id"
            ))),
            None => {
                self.metadata.encryption_keys.push(key.clone());
                Ok(())
            }
        }
    }

    pub(super) fn remove_encryption_key(&mut self, key_id: &str) {
        let keys = &mut self.metadata.encryption_keys;
        self.removed_keys
            .extend(keys.iter().filter(|key| key.key_id() == key_id).cloned());
        keys.retain(|key| key.key_id() != key_id);
    }
}
