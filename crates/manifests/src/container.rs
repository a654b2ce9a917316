//! Decompresses an Avro container file block by block within a limit, so that a small file can't
//! fill the memory, and checks that no block is missing its end.

use std::io::Read;

use flate2::read::DeflateDecoder;

use crate::error::ManifestError;

const MAGIC: &[u8] = b"Obj\x01";
const SYNC_BYTES: usize = 16;
const CODEC: &[u8] = b"avro.codec";

/// The same container with its blocks uncompressed.
pub(crate) fn uncompressed(bytes: &[u8], limit: usize) -> Result<Vec<u8>, ManifestError> {
    if bytes.len() > limit {
        return Err(ManifestError::TooLarge(limit));
    }
    let mut rest = bytes;
    if take(&mut rest, MAGIC.len())? != MAGIC {
        return Err(ManifestError::Container("it doesn't begin like one"));
    }
    let mut plain = MAGIC.to_vec();
    let codec = copy_header(&mut rest, &mut plain)?;
    let sync = take(&mut rest, SYNC_BYTES)?;
    plain.extend_from_slice(sync);
    while !rest.is_empty() {
        let count = take_long(&mut rest)?;
        let size = take_length(&mut rest)?;
        let stored = take(&mut rest, size)?;
        let room = limit.saturating_sub(plain.len());
        let block = codec.decompress(stored, room, limit)?;
        // Every record has at least one byte, so a block can't claim more of them.
        let records = usize::try_from(count).ok();
        if records.is_none_or(|records| records > block.len()) {
            return Err(ManifestError::Container("a block's count doesn't fit it"));
        }
        put_long(&mut plain, count);
        put_long(&mut plain, block.len() as i64);
        plain.extend_from_slice(&block);
        plain.extend_from_slice(sync);
        if take(&mut rest, SYNC_BYTES)? != sync {
            return Err(ManifestError::Container("a block ends with another mark"));
        }
    }
    Ok(plain)
}

/// Copies the header's pairs except the codec, which is told.
fn copy_header(rest: &mut &[u8], plain: &mut Vec<u8>) -> Result<Codec, ManifestError> {
    let mut codec = Codec::None;
    loop {
        let mut pairs = take_long(rest)?;
        if pairs == 0 {
            plain.push(0);
            return Ok(codec);
        }
        if pairs < 0 {
            // Then the size in bytes comes first.
            take_long(rest)?;
            pairs = pairs.saturating_neg();
        }
        for _ in 0..pairs {
            let size = take_length(rest)?;
            let key = take(rest, size)?;
            let size = take_length(rest)?;
            let value = take(rest, size)?;
            if key == CODEC {
                codec = Codec::named(value)?;
                continue;
            }
            put_long(plain, 1);
            for part in [key, value] {
                put_long(plain, part.len() as i64);
                plain.extend_from_slice(part);
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Codec {
    None,
    Deflate,
    Snappy,
    Zstandard,
}

impl Codec {
    fn named(name: &[u8]) -> Result<Codec, ManifestError> {
        match name {
            b"null" => Ok(Codec::None),
            b"deflate" => Ok(Codec::Deflate),
            b"snappy" => Ok(Codec::Snappy),
            b"zstandard" => Ok(Codec::Zstandard),
            other => {
                let name = String::from_utf8_lossy(other).into_owned();
                Err(ManifestError::Codec(name))
            }
        }
    }

    fn decompress(
        self,
        stored: &[u8],
        room: usize,
        limit: usize,
    ) -> Result<Vec<u8>, ManifestError> {
        let damaged = || ManifestError::Container("a block can't be decompressed");
        match self {
            Codec::None => within(stored, room, limit),
            Codec::Deflate => within(DeflateDecoder::new(stored), room, limit),
            Codec::Zstandard => {
                let decoder = zstd::Decoder::new(stored).map_err(|_| damaged())?;
                within(decoder, room, limit)
            }
            Codec::Snappy => {
                // A checksum of four bytes comes last.
                let end = stored.len().checked_sub(4).ok_or_else(damaged)?;
                let stored = &stored[..end];
                let size = snap::raw::decompress_len(stored).map_err(|_| damaged())?;
                if size > room {
                    return Err(ManifestError::TooLarge(limit));
                }
                let mut decoder = snap::raw::Decoder::new();
                decoder.decompress_vec(stored).map_err(|_| damaged())
            }
        }
    }
}

fn within(stored: impl Read, room: usize, limit: usize) -> Result<Vec<u8>, ManifestError> {
    let mut block = Vec::new();
    let most = u64::try_from(room).unwrap_or(u64::MAX).saturating_add(1);
    let read = stored.take(most).read_to_end(&mut block);
    read.map_err(|_| ManifestError::Container("a block can't be decompressed"))?;
    if block.len() > room {
        return Err(ManifestError::TooLarge(limit));
    }
    Ok(block)
}

fn take<'a>(rest: &mut &'a [u8], size: usize) -> Result<&'a [u8], ManifestError> {
    let (taken, left) = rest
        .split_at_checked(size)
        .ok_or(ManifestError::Container("it is cut off"))?;
    *rest = left;
    Ok(taken)
}

fn take_length(rest: &mut &[u8]) -> Result<usize, ManifestError> {
    let length = take_long(rest)?;
    usize::try_from(length).map_err(|_| ManifestError::Container("a length is negative"))
}

/// A number in Avro's zigzag coding.
fn take_long(rest: &mut &[u8]) -> Result<i64, ManifestError> {
    let mut coded: u64 = 0;
    for place in 0..10 {
        let byte = take(rest, 1)?[0];
        coded |= u64::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            return Ok((coded >> 1) as i64 ^ -((coded & 1) as i64));
        }
    }
    Err(ManifestError::Container("a number has no end"))
}

fn put_long(bytes: &mut Vec<u8>, number: i64) {
    let mut coded = ((number << 1) ^ (number >> 63)) as u64;
    while coded >= 0x80 {
        bytes.push((coded & 0x7f) as u8 | 0x80);
        coded >>= 7;
    }
    bytes.push(coded as u8);
}
