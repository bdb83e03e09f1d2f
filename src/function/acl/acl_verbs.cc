// `sluice ctl acl`: rules with their counters, and named sets.
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/file.h"
#include "base/json_text.h"
#include "base/text_table.h"
#include "base/units.h"
#include "function/acl/acl_rows.h"
#include "function/acl/acl_type.h"
#include "function/verb_text.h"
#include "lookup/acl/named_set.h"

namespace sluice::function {
namespace {

using engine::refuse_verb;
using engine::VerbReader;
using engine::VerbRefusal;
using engine::VerbRequest;
using engine::VerbWords;
using Kind = VerbRefusal::Kind;
using Request = tl::expected<VerbRequest, VerbRefusal>;

// A change of a set as the command line has it.
struct SetChange {
  std::string set;
  std::vector<std::string> entries;
  std::string file{};  // of more of them; "-": the standard input
};

Expected<void> check_name(const std::string& set) {
  if (lookup::acl::is_good_name(set)) return {};
  return make_error("NAME: a set's name has " + std::string(lookup::acl::good_name_text));
}

// What the set holds, which says how its file is read.
Expected<lookup::acl::SetType> type_of_set(const VerbReader& read, const std::string& set) {
  const auto answer = read("/api/v1/acl/sets?limit=1&name=" + set);
  if (!answer) return tl::unexpected(answer.error());
  const auto rows = from_json_text<std::vector<AclSetRow>>(*answer);
  if (!rows) return tl::unexpected(rows.error());
  const bool ports = !rows->empty() && rows->front().type == name_of(lookup::acl::SetType::ports);
  return ports ? lookup::acl::SetType::ports : lookup::acl::SetType::addresses;
}

// Those of the file behind those of the command line.
Expected<void> add_entries_of_file(lookup::acl::SetType type, SetChange& change) {
  const bool is_stdin = change.file == "-";
  const auto text = is_stdin ? read_descriptor(STDIN_FILENO, "standard input", lookup::acl::largest_set_text)
                             : Expected<std::string>();
  if (!text) return make_error(text.error().message + "\nnothing is changed");
  const auto read = is_stdin ? lookup::acl::read_set_text(*text, "standard input", type)
                             : lookup::acl::read_set_file(change.file, type);
  if (!read) return make_error(read.error().message + "\nnothing is changed");
  for (const lookup::acl::SetEntry& entry : *read) change.entries.push_back(entry.str());
  if (change.entries.empty()) return make_error((is_stdin ? "standard input" : change.file) + ": has no entries");
  return {};
}

// One request: all of it, or nothing.
Request change_set(const std::string& path, SetChange change, const VerbReader& read) {
  if (const auto good = check_name(change.set); !good) return refuse_verb(Kind::input, good.error().message);
  if (!change.file.empty()) {
    const auto type = type_of_set(read, change.set);
    if (!type) return refuse_verb(Kind::gateway, type.error().message);
    if (const auto done = add_entries_of_file(*type, change); !done) {
      return refuse_verb(Kind::input, done.error().message);
    }
  }
  nlohmann::json body = {{"set", change.set}};
  body["entries"] = std::move(change.entries);
  std::string text = body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (text.size() > lookup::acl::largest_set_text) {
    return refuse_verb(Kind::input, "the change has more than " + bytes_text(lookup::acl::largest_set_text) +
                                        ", the most that one may: make several of it; nothing is changed");
  }
  return change_request(path, std::move(text));
}

Request request_rules(const VerbWords& words, const VerbReader& /*read*/) {
  return VerbRequest{.path = "/api/v1/acl?limit=" + words.one("--limit"), .print = printer(acl_report)};
}

// The entries of one set, one a line, as a file of a set has them.
std::string entries_report(const std::vector<AclSetRow>& sets) {
  std::string text;
  for (const AclSetRow& set : sets) {
    for (const std::string& entry : set.first) text += entry + "\n";
    if (set.entries > set.first.size()) {
      text += "# " + more_text(set.first.size(), set.entries, "entries");
    }
  }
  return text;
}

Request request_sets(const VerbWords& words, const VerbReader& /*read*/) {
  const std::string name = words.one("NAME");
  if (const auto good = check_name(name); !name.empty() && !good) {
    return refuse_verb(Kind::input, good.error().message);
  }
  return VerbRequest{.path = "/api/v1/acl/sets?limit=" + words.one("--limit") + (name.empty() ? "" : "&name=" + name),
                     .print = printer(name.empty() ? acl_sets_report : entries_report)};
}

Request request_set_change(const std::string& verb, const VerbWords& words, const VerbReader& read) {
  SetChange change{words.one("NAME"), words.all("ENTRY"), words.one("--file")};
  if (change.entries.empty() && !words.has("--file")) {
    return refuse_verb(Kind::usage, "ENTRY or -f FILE is required");
  }
  if (words.has("--file") && change.file.empty()) return refuse_verb(Kind::usage, "FILE is empty");
  return change_set("/api/v1/acl/sets/" + verb, std::move(change), read);
}

engine::Verb set_change(const char* name, const char* text) {
  return {.name = name,
          .text = text,
          .arguments = {{.name = "NAME", .text = "the set", .required = true},
                        {.name = "ENTRY",
                         .text = "addresses, prefixes or ranges; of a set of ports: ports or ranges",
                         .many = true},
                        {.name = "-f,--file",
                         .text = "a file of entries, as [[acl.set]] file has them: one a line, or several with blanks "
                                 "or commas between, # or ; a comment; -: the standard input",
                         .type = "FILE",
                         .is_file = true}},
          .footer = "All entries are changed, or none: one that cannot be is named, with its line in the file.",
          .request = [verb = std::string(name)](const VerbWords& words, const VerbReader& read) {
            return request_set_change(verb, words, read);
          }};
}

}  // namespace

std::vector<engine::Verb> acl_verbs() {
  engine::Verb sets{.name = "set",
                    .text = "Named sets of addresses and ports: list them, add or remove entries",
                    .verbs = {{.name = "list",
                               .text = "All sets; of one its entries",
                               .arguments = {{.name = "NAME", .text = "the set whose entries are to be listed"},
                                             engine::limit_argument()},
                               .request = request_sets},
                              set_change("add",
                                         "Add entries, from the next frame on; until a restart, or a reload "
                                         "that changes the set"),
                              set_change("remove", "Take entries out, likewise")}};
  return {{.name = "acl",
           .text = "Rules of the element acl, with the frames and bytes of each; their sets",
           .arguments = {engine::limit_argument()},
           .request = request_rules,
           .verbs = {std::move(sets)}}};
}

std::string acl_report(const AclTable& acl) {
  // Columns that no rule has anything for are left out.
  const bool names = std::ranges::any_of(acl.rules, [](const auto& row) { return !row.name.empty(); });
  const bool comments = std::ranges::any_of(acl.rules, [](const auto& row) { return !row.comment.empty(); });
  std::vector<std::string> columns = {"RULE", "ACTION", ">FRAMES", ">BYTES", "MATCH"};
  if (names) columns.insert(columns.begin() + 1, "NAME");
  if (comments) columns.emplace_back("COMMENT");
  Table table(columns);
  const auto or_dash = [](const std::string& text) { return text.empty() ? "-" : text; };
  const auto add = [&](const std::string& number, const AclRow& row, const std::string& match) {
    std::vector<std::string> cells = {number, row.action, std::to_string(row.frames), std::to_string(row.bytes), match};
    if (names) cells.insert(cells.begin() + 1, or_dash(row.name));
    if (comments) cells.push_back(or_dash(row.comment));
    table.add(cells);
  };
  for (const AclRow& row : acl.rules) add(std::to_string(row.number), row, row.match);
  add("default", acl.unmatched, "no rule matches");
  return table.str() + more_text(acl.rules.size(), acl.count, "rules");
}

std::string acl_sets_report(const std::vector<AclSetRow>& sets) {
  if (sets.empty()) return "there are no sets: [[acl.set]] makes one\n";
  Table table({"SET", "TYPE", ">ENTRIES", ">RULES", "CHANGED", "FILE"});
  for (const AclSetRow& set : sets) {
    table.add({set.name, set.type, std::to_string(set.entries), std::to_string(set.rules), set.changed ? "yes" : "no",
               set.file.empty() ? "-" : set.file});
  }
  return table.str();
}

}  // namespace sluice::function
