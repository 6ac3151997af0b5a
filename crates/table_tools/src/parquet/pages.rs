//! Pages of a column of a file that another program may have written, or that was damaged.
//!
//! The library takes what a page says of itself at its word. What always holds: a page has no more values
//! than its column has rows left, and a dictionary no more than its bytes can hold; levels are in the
//! encoding that the library reads with care. What is damaged inside of a page is met by [`caught`].

use super::part::Part;
use parquet::basic::{Encoding, Type as Physical};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::ParquetError;
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::schema::types::ColumnDescriptor;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

/// Pages whose counts were looked at.
pub(super) struct CheckedPages {
    pages: SerializedPageReader<Part>,
    /// Bytes that a value of a dictionary has at least.
    value_size_min: usize,
    rows_left: u64,
}

impl CheckedPages {
    pub(super) fn new(pages: SerializedPageReader<Part>, column: &ColumnDescriptor, rows: u64) -> Self {
        let value_size_min = match column.physical_type() {
            Physical::BOOLEAN => 1,
            // Of a text it is that of its length.
            Physical::INT32 | Physical::FLOAT | Physical::BYTE_ARRAY => 4,
            Physical::INT64 | Physical::DOUBLE => 8,
            Physical::INT96 => 12,
            Physical::FIXED_LEN_BYTE_ARRAY => usize::try_from(column.type_length()).unwrap_or(0).max(1),
        };
        CheckedPages { pages, value_size_min, rows_left: rows }
    }

    fn check(&mut self, page: &Page) -> Result<(), ParquetError> {
        let damaged = |what: &str| Err(ParquetError::General(what.to_owned()));
        let (values, levels) = match page {
            Page::DictionaryPage { buf, num_values, .. } => {
                let fits = *num_values as usize <= buf.len() / self.value_size_min;
                return if fits { Ok(()) } else { damaged("a dictionary has more values than bytes") };
            }
            Page::DataPage { num_values, def_level_encoding, rep_level_encoding, .. } => {
                (*num_values, [*def_level_encoding, *rep_level_encoding])
            }
            Page::DataPageV2 { num_values, .. } => (*num_values, [Encoding::RLE, Encoding::RLE]),
        };
        #[allow(deprecated)] // It is what must not be met.
        let is_old = levels.contains(&Encoding::BIT_PACKED);
        if is_old {
            return damaged("levels are in an encoding that was given up in 2013");
        }
        let Some(left) = self.rows_left.checked_sub(values.into()) else {
            return damaged("a page has more values than its column has rows");
        };
        self.rows_left = left;
        Ok(())
    }
}

impl Iterator for CheckedPages {
    type Item = Result<Page, ParquetError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for CheckedPages {
    fn get_next_page(&mut self) -> Result<Option<Page>, ParquetError> {
        let page = self.pages.get_next_page()?;
        if let Some(page) = &page {
            self.check(page)?;
        }
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>, ParquetError> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<(), ParquetError> {
        let rows = self.pages.peek_next_page()?.filter(|page| !page.is_dict).and_then(|page| page.num_rows);
        self.rows_left = self.rows_left.saturating_sub(rows.unwrap_or(0) as u64);
        self.pages.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> Result<bool, ParquetError> {
        self.pages.at_record_boundary()
    }
}

thread_local! {
    /// What panics on this thread is met, and not shown.
    static IS_MET: Cell<bool> = const { Cell::new(false) };
}

/// Shows no panics that are met: an error is one line.
fn show_only_others() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = take_hook();
        set_hook(Box::new(move |panic| {
            if !IS_MET.get() {
                usual(panic);
            }
        }));
    });
}

/// Reads values. The library panics at some damages of a page, which is as good as its error.
pub(super) fn caught<T>(read: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, ParquetError> {
    show_only_others();
    IS_MET.set(true);
    // A cursor that failed is not used again.
    let read = catch_unwind(AssertUnwindSafe(read));
    IS_MET.set(false);
    read.unwrap_or_else(|_| Err(ParquetError::General("the values of a page are cut off".to_owned())))
}
