//! Pages of a listing, at latest or at a revision.
//!
//! At a revision two layers are walked side by side: what stands now, and what ended. The second
//! is skipped through from key to key, so that a name with many versions costs one step.

use std::cmp::Ordering;

use rusqlite::types::Value;
use rusqlite::{CachedStatement, params, params_from_iter};

use super::error::classify;
use super::reads::ended_point;
use super::rows::{Db, ENTRY};
use crate::codec;
use crate::entry::{BranchId, Entry, Key, Kind};
use crate::error::StoreError;
use crate::partition::PartitionId;
use crate::read::At;
use crate::revision::Revision;
use crate::segment::{Place, Segment};

type Map = (PartitionId, BranchId);
type Found = Vec<(Key, Entry)>;

/// The first `limit` entries of the segments, which are in order.
pub(super) fn page(
    db: Db<'_>,
    at: At,
    map: Map,
    segments: &[Segment],
    kinds: &[Kind],
    limit: u32,
) -> Result<Found, StoreError> {
    let limit = limit as usize;
    let mut found = Found::new();
    for segment in segments {
        if found.len() == limit {
            break;
        }
        let rest = limit - found.len();
        match at {
            At::Latest if kinds.is_empty() => latest(db, map, segment, rest, &mut found)?,
            At::Latest => latest_of_kinds(db, map, segment, kinds, rest, &mut found)?,
            At::Revision(revision) => {
                at_revision(db, map, segment, (kinds, revision), limit, &mut found)?;
            }
        }
    }
    Ok(found)
}

/// The bounds of a segment as SQL, and their values behind partition and branch.
fn bounds(segment: &Segment) -> (String, Vec<Value>) {
    let operator = if segment.inclusive { ">=" } else { ">" };
    let mut sql =
        format!("partition = ?1 AND branch = ?2 AND (scope, class, name) {operator} (?3, ?4, ?5)");
    let mut values = place_values(&segment.from).to_vec();
    if let Some(to) = &segment.to {
        sql.push_str(" AND (scope, class, name) < (?6, ?7, ?8)");
        values.extend(place_values(to));
    }
    (sql, values)
}

fn place_values(place: &Place) -> [Value; 3] {
    [
        Value::Text(place.scope.clone()),
        Value::Integer(i64::from(place.class)),
        Value::Text(place.name.clone()),
    ]
}

fn with_map(map: Map, values: Vec<Value>, limit: usize) -> Vec<Value> {
    let mut all = vec![Value::Integer(map.0.0), Value::Integer(map.1.0)];
    all.extend(values);
    all.push(Value::Integer(limit as i64));
    all
}

fn latest(
    db: Db<'_>,
    map: Map,
    segment: &Segment,
    limit: usize,
    found: &mut Found,
) -> Result<(), StoreError> {
    let (bounds, values) = bounds(segment);
    let limit_place = values.len() + 3;
    let sql = format!(
        "SELECT partition, branch, scope, class, name, {ENTRY} FROM current \
         INDEXED BY sqlite_autoindex_current_1 \
         WHERE {bounds} ORDER BY scope, class, name LIMIT ?{limit_place}"
    );
    let parameters = params_from_iter(with_map(map, values, limit));
    found.extend(db.query(&sql, parameters, |row| Ok((row.key(0)?, row.entry(5)?)))?);
    Ok(())
}

/// One class of one scope, read by kind: a page of views costs the same among any number of tables.
fn latest_of_kinds(
    db: Db<'_>,
    map: Map,
    segment: &Segment,
    kinds: &[Kind],
    limit: usize,
    found: &mut Found,
) -> Result<(), StoreError> {
    let operator = if segment.inclusive { ">=" } else { ">" };
    let of_kind = |kind: &Kind| {
        format!(
            "SELECT * FROM (SELECT partition, branch, scope, class, name, {ENTRY} FROM current \
             WHERE partition = ?1 AND branch = ?2 AND scope = ?3 AND class = ?4 \
               AND kind = {} AND name {operator} ?5 ORDER BY name LIMIT ?6)",
            *kind as i64
        )
    };
    let parts: Vec<String> = kinds.iter().map(of_kind).collect();
    let sql = format!("{} ORDER BY name LIMIT ?6", parts.join(" UNION ALL "));
    let parameters = params_from_iter(with_map(map, place_values(&segment.from).to_vec(), limit));
    found.extend(db.query(&sql, parameters, |row| Ok((row.key(0)?, row.entry(5)?)))?);
    Ok(())
}

fn at_revision(
    db: Db<'_>,
    map: Map,
    segment: &Segment,
    (kinds, revision): (&[Kind], Revision),
    limit: usize,
    found: &mut Found,
) -> Result<(), StoreError> {
    let (sql_bounds, values) = bounds(segment);
    let limit_place = values.len() + 3;
    let current = format!(
        "SELECT partition, branch, scope, class, name, {ENTRY} FROM current \
         INDEXED BY sqlite_autoindex_current_1 \
         WHERE {sql_bounds} ORDER BY scope, class, name LIMIT ?{limit_place}"
    );
    db.statements
        .fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let mut statement = db.connection.prepare_cached(&current).map_err(classify)?;
    let mut rows = statement
        .query(params_from_iter(with_map(map, values, usize::MAX >> 1)))
        .map_err(classify)?;
    let mut next_current = || -> Result<Option<(Key, Entry)>, StoreError> {
        let Some(row) = rows.next().map_err(classify)? else {
            return Ok(None);
        };
        let row = super::rows::Columns::of(row);
        Ok(Some((row.key(0)?, row.entry(5)?)))
    };
    let mut ended = EndedKeys::new(db, map, segment)?;
    let mut standing = next_current()?;
    let mut ended_key = ended.next(&segment.from, segment.inclusive)?;
    while found.len() < limit {
        let order = match (&standing, &ended_key) {
            (None, None) => break,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some((key, _)), Some(place)) => place_of(key).cmp(place),
        };
        let mut candidate = None;
        if order != Ordering::Greater {
            candidate = standing.take().filter(|(_, entry)| entry.from <= revision);
            standing = next_current()?;
        }
        if order != Ordering::Less
            && let Some(place) = ended_key.take()
        {
            if candidate.is_none() {
                let key = key_of(map, &place)?;
                let entry = ended_point(db, &key, revision.0)?;
                candidate = entry.map(|entry| (key, entry));
            }
            ended_key = ended.next(&place, false)?;
        }
        let is_wanted = |kind: Kind| kinds.is_empty() || kinds.contains(&kind);
        found.extend(candidate.filter(|(_, entry)| is_wanted(entry.kind)));
    }
    Ok(())
}

fn place_of(key: &Key) -> Place {
    Place {
        scope: key.scope.clone(),
        class: key.class as i16,
        name: key.name.clone(),
    }
}

fn key_of(map: Map, place: &Place) -> Result<Key, StoreError> {
    Ok(Key {
        partition: map.0,
        branch: map.1,
        scope: place.scope.clone(),
        class: codec::class(i64::from(place.class))?,
        name: place.name.clone(),
    })
}

/// Steps from one key with ended versions to the next.
struct EndedKeys<'a> {
    db: Db<'a>,
    map: Map,
    to: Option<Place>,
    statement: CachedStatement<'a>,
}

impl<'a> EndedKeys<'a> {
    fn new(db: Db<'a>, map: Map, segment: &Segment) -> Result<EndedKeys<'a>, StoreError> {
        let sql = "SELECT scope, class, name FROM history \
             INDEXED BY sqlite_autoindex_history_1 \
             WHERE partition = ?1 AND branch = ?2 AND (scope, class, name) > (?3, ?4, ?5) \
             ORDER BY scope, class, name LIMIT 1";
        Ok(EndedKeys {
            db,
            map,
            to: segment.to.clone(),
            statement: db.connection.prepare_cached(sql).map_err(classify)?,
        })
    }

    fn next(&mut self, from: &Place, inclusive: bool) -> Result<Option<Place>, StoreError> {
        if inclusive && let Some(exact) = self.exact(from)? {
            return Ok(Some(exact));
        }
        self.db
            .statements
            .fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let parameters = params![
            self.map.0.0,
            self.map.1.0,
            from.scope,
            from.class,
            from.name
        ];
        let mut rows = self.statement.query(parameters).map_err(classify)?;
        let Some(row) = rows.next().map_err(classify)? else {
            return Ok(None);
        };
        let place = Place {
            scope: row.get(0).map_err(classify)?,
            class: row.get(1).map_err(classify)?,
            name: row.get(2).map_err(classify)?,
        };
        let is_inside = self.to.as_ref().is_none_or(|to| place < *to);
        Ok(is_inside.then_some(place))
    }

    fn exact(&self, place: &Place) -> Result<Option<Place>, StoreError> {
        let found = self.db.query_one(
            "SELECT 1 FROM history WHERE partition = ?1 AND branch = ?2 AND scope = ?3 \
             AND class = ?4 AND name = ?5 LIMIT 1",
            params![
                self.map.0.0,
                self.map.1.0,
                place.scope,
                place.class,
                place.name
            ],
            |_| Ok(()),
        )?;
        Ok(found.map(|()| place.clone()))
    }
}
