// Where the parts of one family's tables lie (tables.h says what they are). Plain data, for the host and for kernels.
#pragma once

#include <cstdint>

namespace sluice::lookup::acl {

// Rules are in four groups, by how wide their two prefixes are.
inline constexpr unsigned group_count = 4;
// Cells of a page.
inline constexpr std::uint32_t page_cells = 32;

// Offsets in words of 4 bytes from the first word of the tables. All parts begin at a multiple of 16 bytes.
struct FamilyTables {
  static constexpr std::uint32_t child_flag = 0x8000'0000;  // in a slot of a trie: the number of a block
  static constexpr std::uint32_t row_flag = 0x8000'0000;    // in a cell: the number of a row, not of a record
  static constexpr std::uint32_t last_flag = 0x8000'0000;   // in a record: the last one of its list
  static constexpr std::uint32_t tags_flag = 0x4000'0000;   // in a record: its rule asks for tags, too

  std::uint32_t groups = 0;  // bit g: group g has rules; 0: nothing matches
  std::uint32_t paged = 0;   // bit g: group g's cells lie in pages
  std::uint32_t source_trie = 0;
  std::uint32_t destination_trie = 0;
  std::uint32_t source_rows = 0;  // by address class: 4 words, where its row begins in each group's cells or pages
  std::uint32_t destination_columns = 0;  // by address class: 4 words, its column in each group
  std::uint32_t pages = 0;                // by row + column / page_cells: a page of cells, counted from the first cell
  std::uint32_t cells = 0;
  std::uint32_t records = 0;
  std::uint32_t tags = 0;               // by rule: the tags that it asks for, value | mask << 16; where any does
  std::uint32_t source_ports = 0;       // 2^16 words
  std::uint32_t destination_ports = 0;  // 2^16 words
  std::uint32_t protocol_flags = 0;     // 2^16 words, by protocol << 8 | flags
  std::uint32_t port_pairs = 0;         // by source port class * destination port classes + destination port class
  std::uint32_t port_classes = 0;       // by port pair class * protocol classes + protocol class
  std::uint32_t rows = 0;               // by row * port class count + port class
  std::uint32_t destination_port_classes = 0;
  std::uint32_t protocol_classes = 0;
  std::uint32_t port_class_count = 0;
};

// A rule's ports, protocol and flags, as a kernel reads them with one load.
struct alignas(16) Record {
  std::uint32_t source_port;       // first | last << 16
  std::uint32_t destination_port;  // first | last << 16
  std::uint32_t protocol_flags;    // protocol | mask << 8 | flags << 16 | mask << 24
  std::uint32_t rule;              // index, tags_flag and last_flag
};
static_assert(sizeof(Record) == 16);

// Valid as long as the GpuClassifier, and until the next sync() for kernels that are enqueued later.
struct ClassifierView {
  const std::uint32_t* words = nullptr;
  FamilyTables v4;
  FamilyTables v6;
  std::uint32_t denied = 0;  // a bit for each rule, from this word on: its action is to deny
};

}  // namespace sluice::lookup::acl
