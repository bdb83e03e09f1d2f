// For tests of the configuration: pieces of a file, and a function that only reads settings.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/settings.h"
#include "engine/element.h"
#include "engine/port_table.h"
#include "engine/tables.h"
#include "engine/traits.h"

namespace sluice::control {

// A function that only reads settings; with `megabytes` or `large`, one that has tables of such a size and a file that
// is wrong.
class Probe final : public engine::Element, public engine::Tables {
 public:
  explicit Probe(std::uint64_t megabytes) : megabytes_(megabytes) {}
  engine::Shape shape() const override { return {.ends_chain = true}; }
  void* find_trait(std::string_view name) override {
    return megabytes_ == 0 ? nullptr : engine::offer<engine::Tables>(name, this);
  }
  void apply(engine::Batch&, engine::Span, engine::Emitter&) override {}

  Memory memory() const override { return {megabytes_ << 20, {"depth", "megabytes"}}; }
  void watch_loading(engine::TableProgress progress) override { progress_ = std::move(progress); }
  Expected<void> read() override {
    if (progress_ && !progress_("probing", 1, 2)) return make_error("interrupted");
    return make_error("probe.txt:1: is wrong\nprobe.txt:2: too");
  }
  void take_read(engine::Tables&) override {}
  void leave_to_eal() override {}

 private:
  std::uint64_t megabytes_;
  engine::TableProgress progress_;
};

inline Expected<std::unique_ptr<engine::Element>> make_probe(Settings& settings, const engine::PortTable& ports) {
  settings.integer("depth", 1, 1, 9);
  if (settings.boolean("fail", false))
    return make_error("cannot be made with " + std::to_string(ports.size()) + " ports");
  return std::make_unique<Probe>(static_cast<std::uint64_t>(
      settings.integer("megabytes", settings.boolean("large", false) ? 4096 : 0, 0, 1 << 20)));
}

inline const bool probe_registered =
    engine::register_element({.name = "probe", .text = "reads settings", .make = make_probe, .ends_chain = true});

inline const std::string good_port = "[[port]]\nname = \"a\"\ndevice = \"net_null0\"\n";
// Line 1 is the chain; a case's text begins at line 2.
inline std::string with_chain(const std::string& text) {
  return "engine.chain = [\"probe\"]\n" + text;
}

}  // namespace sluice::control
