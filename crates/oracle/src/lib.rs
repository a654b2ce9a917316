//! Tests that compare Anabranch with independent implementations of the same protocols.
//!
//! There is nothing here but `tests/`: one file or folder per oracle. They are slow to build, because the oracles bring
//! in Arrow and Parquet, and so have a crate of their own that nothing else depends on.
