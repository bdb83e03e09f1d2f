#include "function/mirror/sessions.h"

#include <array>
#include <cstring>

#include "function/acl/frame_key.h"

namespace sluice::function {

using lookup::acl::Key4;
using lookup::acl::Key6;
using lookup::acl::no_match;
using lookup::acl::RuleIndex;

Expected<std::unique_ptr<MirrorSessions>> MirrorSessions::create(const MirrorOptions& options) {
  auto made = std::make_unique<MirrorSessions>();
  for (const MirrorSession& session : options.sessions) {
    const auto bit = static_cast<SessionBits>(1U << made->sessions_.size());
    made->sessions_.push_back(session);
    made->to_ |= PortBits{1} << session.to;
    if (session.rx) made->rx_from_ |= session.from;
    if (session.tx) made->tx_from_ |= session.from;
    for (PortBits left = session.from; left != 0; left &= left - 1) {
      const auto port = static_cast<std::size_t>(__builtin_ctz(left));
      if (session.rx) made->of_rx_[port] |= bit;
      if (session.tx) made->of_tx_[port] |= bit;
    }
    made->classifiers_.emplace_back();
    if (!session.has_rules) continue;
    auto classifier = lookup::acl::Classifier::create({.name = "mirror"}, session.rules);
    if (!classifier) return make_error("[[mirror.session]] " + session.name + ": " + classifier.error().message);
    made->classifiers_.back() = std::move(*classifier);
    made->with_rules_ |= bit;
  }
  if (!options.plan.uses().empty()) made->sets_ = lookup::acl::SetTables::build(options.sets, options.plan);
  return made;
}

void MirrorSessions::match(Frame* frames, unsigned count) const {
  std::array<Key4, most_at_once> keys4;
  std::array<Key6, most_at_once> keys6;
  std::array<std::uint8_t, most_at_once> of_key4, of_key6;  // the frame of each key
  std::array<RuleIndex, most_at_once> found;
  unsigned n4 = 0, n6 = 0;
  const auto tag = [this](auto& key) {
    if (!sets_) return;
    const std::uint16_t tags = sets_->tags(key);
    std::memcpy(key.tags, &tags, sizeof tags);
  };
  SessionBits asked = 0;
  for (unsigned i = 0; i < count; ++i) {
    Frame& frame = frames[i];
    if ((frame.sessions & with_rules_) == 0) continue;
    asked |= frame.sessions & with_rules_;
    switch (make_key(frame.data, frame.length, keys4[n4], keys6[n6])) {
      case KeyKind::ipv4:
        tag(keys4[n4]);
        of_key4[n4++] = static_cast<std::uint8_t>(i);
        break;
      case KeyKind::ipv6:
        tag(keys6[n6]);
        of_key6[n6++] = static_cast<std::uint8_t>(i);
        break;
      case KeyKind::not_ip:
      case KeyKind::malformed:
        frame.sessions &= static_cast<SessionBits>(~with_rules_);
        break;
    }
  }
  for (std::size_t s = 0; s < sessions_.size(); ++s) {
    const auto bit = static_cast<SessionBits>(1U << s);
    if ((asked & bit) == 0) continue;
    const auto take = [&](const auto& frame_of, unsigned n) {
      for (unsigned k = 0; k < n; ++k) {
        if (found[k] == no_match) frames[frame_of[k]].sessions &= static_cast<SessionBits>(~bit);
      }
    };
    if (n4 != 0) classifiers_[s]->classify4(keys4.data(), found.data(), n4);
    take(of_key4, n4);
    if (n6 != 0) classifiers_[s]->classify6(keys6.data(), found.data(), n6);
    take(of_key6, n6);
  }
}

}  // namespace sluice::function
