// What a message says of the functions that there are, and of a chain that would do: all but the last one, which
// decides what becomes of every frame, stand in front of it.
//
// Thread-safety: any thread, once all functions are registered.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::control {

// Elements in front, or those that end a chain, by name, each in quotes: "acl", "inspect".
std::string names_of_kind(bool in_front);

// All that there are, and where: `the last function is one of "bridge", "route", and in front of it there can be
// "acl"`.
std::string functions_and_places();

// As the file has it: ["acl", "route"].
std::string chain_text(std::span<const std::string> chain);

// `chain` with `name` in it, a function that is registered: one that goes on in front, the one
// that forwards in the last one's place; and with those in `others`, whose sections the file has, too.
// One that begins a chain is the first of them. What is in `chain` and no function is left out. One that forwards is
// always there: where `chain` has none, the one that Sluice takes by itself.
std::vector<std::string> chain_with(std::string_view name, std::span<const std::string> chain,
                                    std::span<const std::string> others);

}  // namespace sluice::control
