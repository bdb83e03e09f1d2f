// Variables that whoever runs the rules gives as NAME=VALUE: before what the rules' files say (Variables::fix).
//
// Thread-safety: none while `variables` is changed.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "match/rules/variables.h"

namespace sluice::match {

// Each is a mistake, in their order: a text that is no NAME=VALUE, a name or value that Variables::fix() refuses, a
// name that was given before.
std::vector<std::string> fix_variables(std::span<const std::string> texts, Variables& variables);

// Of those that are fixed, each that rules can use neither as addresses nor as ports: they may name any others.
std::vector<std::string> unusable_variables(const Variables& variables);

}  // namespace sluice::match
