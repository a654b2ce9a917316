//! Metalakes and catalogs.

use anabranch_files::StorageSettings;
use anabranch_partition::{Reason, Refusal, RunError, Subject};
use anabranch_store::{Answer, Class, Kind, PartitionId, PartitionKind, Path, Read};

use crate::body::{self, CatalogBody, MetalakeBody, Properties};
use crate::command::{CreateContainer, DropContainer, RenameContainer};
use crate::error::CatalogError;
use crate::name::{Warehouse, check_plain_name};
use crate::place::{Container, not_found};
use crate::properties;
use crate::service::caller::{Caller, Changed, changed};
use crate::service::listing::{Listing, Page, Shelf};
use crate::service::{Catalog, location};

/// A catalog to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewCatalog {
    /// Its name and metalake.
    pub warehouse: Warehouse,
    /// Where its tables go.
    pub location: String,
    /// Storage settings and free properties.
    pub properties: Properties,
}

/// A catalog as it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct CatalogInfo {
    /// Its name and metalake.
    pub warehouse: Warehouse,
    /// Its id, which is also its partition's.
    pub id: PartitionId,
    /// Where its tables go.
    pub location: String,
    /// Its properties; secrets are left to [`CatalogInfo::shown_properties`] to mask.
    pub properties: Properties,
    /// How its files are reached.
    pub settings: StorageSettings,
}

impl CatalogInfo {
    /// The properties as they may be shown: secrets masked.
    pub fn shown_properties(&self) -> Properties {
        let mask = |(key, value): (&String, &String)| {
            let shown = if StorageSettings::is_secret(key) {
                "******".to_owned()
            } else {
                value.clone()
            };
            (key.clone(), shown)
        };
        self.properties.iter().map(mask).collect()
    }
}

impl Catalog {
    /// Makes the metalake and the catalog unless they are there; any number of servers may do it
    /// at once. Answers the catalog as it stands, which may lie elsewhere.
    pub async fn ensure_catalog(
        &self,
        caller: &Caller,
        new: &NewCatalog,
    ) -> Result<CatalogInfo, CatalogError> {
        let metalake = self.create_metalake(caller, &new.warehouse.metalake).await;
        if let Err(error) = metalake
            && !already_there(&error)
        {
            return Err(error);
        }
        if let Err(error) = self.create_catalog(caller, new).await
            && !already_there(&error)
        {
            return Err(error);
        }
        self.load_catalog(&new.warehouse).await
    }

    /// Creates a metalake.
    pub async fn create_metalake(
        &self,
        caller: &Caller,
        name: &str,
    ) -> Result<Changed<()>, CatalogError> {
        check_plain_name("metalake", name)?;
        let command = CreateContainer {
            parent: None,
            kind: Kind::Metalake,
            name: name.to_owned(),
            partition: PartitionId::new(PartitionKind::Metalake, rand::random()),
            body: body::write(&MetalakeBody::default()),
        };
        let accepted = self
            .core
            .run(caller, vec![PartitionId::ROOT], command)
            .await?;
        Ok(changed((), &accepted))
    }

    /// Creates a catalog in a metalake.
    pub async fn create_catalog(
        &self,
        caller: &Caller,
        new: &NewCatalog,
    ) -> Result<Changed<CatalogInfo>, CatalogError> {
        let tried = self.try_create_catalog(caller, new).await;
        let Changed { value, revision } = self.core.answer(caller, tried).await?;
        let stored = stored(new);
        let value = CatalogInfo {
            warehouse: new.warehouse.clone(),
            id: PartitionId(value),
            settings: settings_of(&stored.properties)?,
            location: stored.location,
            properties: stored.properties,
        };
        Ok(Changed { value, revision })
    }

    async fn try_create_catalog(
        &self,
        caller: &Caller,
        new: &NewCatalog,
    ) -> Result<Changed<i64>, CatalogError> {
        let name = &new.warehouse.catalog;
        check_plain_name("name", name)?;
        properties::check(&new.properties)?;
        self.core.check_reach("location", &new.location)?;
        for prefix in location::further_prefixes(&new.properties) {
            self.core.check_reach(location::ALLOWED_PROPERTY, prefix)?;
        }
        let settings = settings_of(&new.properties)?;
        if settings.sends_ambient_keys_elsewhere() {
            return Err(Refusal::invalid(
                "`properties`: with `s3.endpoint`, give `s3.access-key-id` and \
                 `s3.secret-access-key` too; the server's own credentials are not sent to an \
                 address that a caller chose",
            )
            .into());
        }
        let metalake = self.metalake(&new.warehouse.metalake).await?;
        let partition = PartitionId::new(PartitionKind::Catalog, rand::random());
        let command = CreateContainer {
            kind: Kind::Catalog,
            name: name.clone(),
            partition,
            body: body::write(&stored(new)),
            parent: Some((metalake.clone(), Subject::Metalake)),
        };
        let accepted = self
            .core
            .run(caller, vec![metalake.partition], command)
            .await?;
        Ok(changed(accepted.outcome, &accepted))
    }

    /// A catalog by name.
    pub async fn load_catalog(&self, warehouse: &Warehouse) -> Result<CatalogInfo, CatalogError> {
        let catalog = self.core.catalog(warehouse).await?;
        Ok(CatalogInfo {
            warehouse: warehouse.clone(),
            id: catalog.container.partition,
            location: catalog.body.location,
            properties: catalog.body.properties,
            settings: catalog.settings,
        })
    }

    /// The catalogs of a metalake.
    pub async fn list_catalogs(
        &self,
        metalake: &str,
        page: &Page,
    ) -> Result<Listing<CatalogInfo>, CatalogError> {
        let container = self.metalake(metalake).await?;
        let shelf = Shelf {
            partition: container.partition,
            scope: String::new(),
            class: Class::Container,
            kinds: Vec::new(),
        };
        let shelved = self.core.list(shelf, page).await?;
        let mut items = Vec::with_capacity(shelved.entries.len());
        for (key, entry) in shelved.entries {
            let body: CatalogBody = body::read(&entry)?;
            items.push(CatalogInfo {
                warehouse: Warehouse {
                    reference: None,
                    metalake: metalake.to_owned(),
                    catalog: key.name,
                },
                id: PartitionId(entry.object.0),
                location: body.location,
                settings: StorageSettings::from_properties(&body.properties)
                    .map_err(|error| Refusal::invalid(error.to_string()))?,
                properties: body.properties,
            });
        }
        Ok(Listing {
            items,
            next: shelved.next,
            revision: None,
        })
    }

    /// Renames a catalog.
    pub async fn rename_catalog(
        &self,
        caller: &Caller,
        warehouse: &Warehouse,
        new_name: &str,
    ) -> Result<Changed<()>, CatalogError> {
        let tried = self.try_rename_catalog(caller, warehouse, new_name).await;
        self.core.answer(caller, tried).await
    }

    async fn try_rename_catalog(
        &self,
        caller: &Caller,
        warehouse: &Warehouse,
        new_name: &str,
    ) -> Result<Changed<()>, CatalogError> {
        check_plain_name("name", new_name)?;
        let catalog = self.core.catalog(warehouse).await?;
        let parent = catalog.metalake.partition;
        let partitions = vec![parent, catalog.container.partition];
        let command = RenameContainer {
            parent,
            container: catalog.container,
            subject: Subject::Catalog,
            new_name: new_name.to_owned(),
        };
        let accepted = self.core.run(caller, partitions, command).await?;
        Ok(changed((), &accepted))
    }

    /// Drops a catalog; with `cascade` also what is in it, of which the files stay.
    pub async fn drop_catalog(
        &self,
        caller: &Caller,
        warehouse: &Warehouse,
        cascade: bool,
    ) -> Result<Changed<()>, CatalogError> {
        let tried = self.try_drop_catalog(caller, warehouse, cascade).await;
        self.core.answer(caller, tried).await
    }

    async fn try_drop_catalog(
        &self,
        caller: &Caller,
        warehouse: &Warehouse,
        cascade: bool,
    ) -> Result<Changed<()>, CatalogError> {
        let catalog = self.core.catalog(warehouse).await?;
        let parent = catalog.metalake.partition;
        let mut partitions = vec![parent, catalog.container.partition];
        if cascade {
            let children = Read::Children(catalog.container.partition);
            if let Some(Answer::Partitions(below)) =
                self.core.partitions.read(&[children]).await?.pop()
            {
                partitions.extend(below);
            }
        }
        let command = DropContainer {
            parent,
            container: catalog.container,
            subject: Subject::Catalog,
            cascade,
        };
        let accepted = self.core.run(caller, partitions, command).await?;
        Ok(changed((), &accepted))
    }

    /// The names of all metalakes.
    pub async fn list_metalakes(&self) -> Result<Vec<String>, CatalogError> {
        let shelf = Shelf {
            partition: PartitionId::ROOT,
            scope: String::new(),
            class: Class::Container,
            kinds: Vec::new(),
        };
        let shelved = self.core.list(shelf, &Page::default()).await?;
        Ok(shelved
            .entries
            .into_iter()
            .map(|(key, _)| key.name)
            .collect())
    }

    async fn metalake(&self, name: &str) -> Result<Container, CatalogError> {
        check_plain_name("metalake", name)?;
        let path = Path {
            metalake: name.to_owned(),
            catalog: None,
            database: None,
            leaf: None,
        };
        let metalake = self.core.locate_one(path).await?.resolved.metalake;
        let entry = metalake.ok_or_else(|| not_found(Subject::Metalake, name))?;
        Ok(Container::new(PartitionId(entry.object.0), name))
    }
}

fn already_there(error: &CatalogError) -> bool {
    matches!(
        error,
        CatalogError::Run(RunError::Refused(Refusal {
            reason: Reason::AlreadyExists(_),
            ..
        }))
    )
}

/// What a new catalog's entry holds.
fn stored(new: &NewCatalog) -> CatalogBody {
    CatalogBody {
        location: new.location.trim_end_matches('/').to_owned(),
        properties: new.properties.clone(),
    }
}

fn settings_of(properties: &Properties) -> Result<StorageSettings, Refusal> {
    StorageSettings::from_properties(properties)
        .map_err(|error| Refusal::invalid(format!("`properties`: {error}")))
}
