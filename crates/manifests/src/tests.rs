use apache_avro::types::Record;
use apache_avro::{Codec as AvroCodec, DeflateSettings, Schema, Writer};

use super::*;

const LIMIT: usize = 1 << 20;

const MANIFEST: &str = r#"{"type": "record", "name": "manifest_entry", "fields": [
    {"name": "status", "type": "int", "field-id": 0},
    {"name": "unheard_of", "type": ["null", "long"], "default": null},
    {"name": "data_file", "type": {"type": "record", "name": "r2", "fields": [
        {"name": "content", "type": "int"},
        {"name": "file_path", "type": "string"},
        {"name": "counts", "type": ["null", {"type": "array", "logicalType": "map", "items":
            {"type": "record", "name": "k1_v2", "fields": [
                {"name": "key", "type": "int"}, {"name": "value", "type": "long"}]}}]}
    ]}}
]}"#;

fn manifest(codec: AvroCodec, entries: &[(i32, &str)]) -> Vec<u8> {
    let schema = Schema::parse_str(MANIFEST).unwrap();
    let mut writer = Writer::with_codec(&schema, Vec::new(), codec);
    for (status, path) in entries {
        let mut record = Record::new(&schema).unwrap();
        record.put("status", *status);
        record.put("unheard_of", Value::Union(0, Box::new(Value::Null)));
        record.put(
            "data_file",
            Value::Record(vec![
                ("content".to_owned(), Value::Int(0)),
                ("file_path".to_owned(), Value::String((*path).to_owned())),
                ("counts".to_owned(), Value::Union(0, Box::new(Value::Null))),
            ]),
        );
        writer.append(record).unwrap();
        writer.flush().unwrap();
    }
    writer.into_inner().unwrap()
}

fn files(bytes: &[u8], limit: usize) -> Result<Vec<(String, Status)>, ManifestError> {
    let mut found = Vec::new();
    read_manifest(bytes, limit, |path, status| {
        found.push((path.to_owned(), status));
    })?;
    Ok(found)
}

fn codecs() -> [AvroCodec; 4] {
    [
        AvroCodec::Null,
        AvroCodec::Deflate(DeflateSettings::default()),
        AvroCodec::Snappy,
        AvroCodec::Zstandard(apache_avro::ZstandardSettings::default()),
    ]
}

#[test]
fn live_and_deleted_entries_are_told_apart_under_every_codec() {
    for codec in codecs() {
        let bytes = manifest(
            codec,
            &[(0, "s3://b/old"), (1, "s3://b/new"), (2, "s3://b/gone")],
        );
        let found = files(&bytes, LIMIT).unwrap();
        let wanted = [
            ("s3://b/old", Status::Live),
            ("s3://b/new", Status::Live),
            ("s3://b/gone", Status::Deleted),
        ];
        let wanted = wanted.map(|(path, status)| (path.to_owned(), status));
        assert_eq!(found, wanted, "{codec:?}");
    }
}

#[test]
fn a_manifest_list_names_its_manifests() {
    let schema = r#"{"type": "record", "name": "manifest_file", "fields": [
        {"name": "manifest_length", "type": "long"},
        {"name": "manifest_path", "type": "string"}]}"#;
    let schema = Schema::parse_str(schema).unwrap();
    let mut writer = Writer::new(&schema, Vec::new());
    for path in ["s3://b/m1.avro", "s3://b/m2.avro"] {
        let mut record = Record::new(&schema).unwrap();
        record.put("manifest_length", 7_i64);
        record.put("manifest_path", path);
        writer.append(record).unwrap();
    }
    let mut found = Vec::new();
    let bytes = writer.into_inner().unwrap();
    read_manifest_list(&bytes, LIMIT, |path| found.push(path.to_owned())).unwrap();
    assert_eq!(found, ["s3://b/m1.avro", "s3://b/m2.avro"]);
    // It is no manifest, and that is said, not passed over.
    assert!(matches!(
        files(&bytes, LIMIT),
        Err(ManifestError::Field("status"))
    ));
}

#[test]
fn every_cut_is_an_error_or_ends_at_a_block() {
    for codec in codecs() {
        let entries: Vec<(i32, &str)> = vec![(1, "s3://b/a"), (1, "s3://b/b"), (1, "s3://b/c")];
        let whole = manifest(codec, &entries);
        let mut ends = 0;
        for end in 0..whole.len() {
            // A file that ends with a block is a whole file; the header alone is one too.
            if let Ok(found) = files(&whole[..end], LIMIT) {
                assert!(found.len() < entries.len());
                ends += 1;
            }
        }
        assert!(ends <= entries.len(), "{codec:?}: {ends}");
    }
}

#[test]
fn damage_anywhere_never_panics() {
    let whole = manifest(AvroCodec::Null, &[(1, "s3://b/a"), (2, "s3://b/b")]);
    for place in 0..whole.len() {
        for bit in 0..8 {
            let mut damaged = whole.clone();
            damaged[place] ^= 1 << bit;
            let _ = files(&damaged, LIMIT);
        }
    }
}

#[test]
fn what_swells_beyond_the_limit_is_refused() {
    let long = "x".repeat(200_000);
    for codec in codecs().into_iter().skip(1) {
        let bytes = manifest(codec, &[(1, &long)]);
        assert!(bytes.len() < 100_000, "it is meant to be small");
        assert!(matches!(
            files(&bytes, 100_000),
            Err(ManifestError::TooLarge(100_000))
        ));
        assert_eq!(files(&bytes, LIMIT).unwrap().len(), 1);
    }
}

#[test]
fn an_unknown_status_or_codec_is_an_error() {
    let bytes = manifest(AvroCodec::Null, &[(3, "s3://b/a")]);
    assert!(matches!(
        files(&bytes, LIMIT),
        Err(ManifestError::Status(3))
    ));
    let bytes = manifest(AvroCodec::Deflate(DeflateSettings::default()), &[(1, "a")]);
    let place = bytes
        .windows(7)
        .position(|part| part == b"deflate")
        .unwrap();
    let mut other = bytes;
    other[place..place + 7].copy_from_slice(b"unknown");
    assert!(matches!(files(&other, LIMIT), Err(ManifestError::Codec(name)) if name == "unknown"));
}
