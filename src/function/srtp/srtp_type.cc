#include "function/srtp/srtp_type.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/host_limits.h"
#include "engine/advice.h"
#include "engine/calibration.h"
#include "engine/stream_source.h"
#include "engine/traits.h"
#include "function/readable_keys.h"
#include "function/srtp/calibrate/made_streams.h"
#include "function/srtp/calibrate/media_traffic.h"
#include "function/srtp/described_streams.h"
#include "function/srtp/rtsp/medium_deadlines.h"
#include "function/srtp/srtp_notes.h"

namespace sluice::function {
namespace {

class Type final : public engine::Api,
                   public engine::Verbs,
                   public engine::Advice,
                   public engine::StreamSource,
                   public engine::Calibration {
 public:
  const std::vector<engine::ApiRoute>& routes() const override { return srtp_routes(); }
  std::vector<engine::Verb> verbs() const override { return srtp_verbs(); }

  std::vector<std::string> notes(engine::SectionView& view, Occasion occasion) const override {
    std::vector<std::string> all;
    if (occasion == Occasion::check) all = shared_key_notes(view);
    if (std::string note = readable_keys_note(view, "stream"); !note.empty()) all.push_back(std::move(note));
    if (occasion == Occasion::check) std::ranges::move(rtsp_notes(view, host_limits()), std::back_inserter(all));
    return all;
  }
  std::vector<std::string> lacks(engine::SectionView& view) const override { return rtsp_lacks(view); }
  std::string_view wants_in_chain(Settings& section) const override { return section.has("rtsp") ? "route" : ""; }

  std::vector<Stream> streams(engine::SectionView& view) const override { return described_streams(view); }
  std::vector<std::string> suites(engine::SectionView& view) const override {
    std::vector<std::string> all = stream_suites(view);
    if (std::string rtsp = rtsp_suite(view); !rtsp.empty()) all.push_back(std::move(rtsp));
    return all;
  }
  std::vector<std::string> kinds(engine::SectionView& view) const override { return media_kinds(view); }
  std::uint32_t largest_packet(engine::SectionView& view) const override { return function::largest_packet(view); }
  Later later(engine::SectionView& view) const override {
    return {rtsp_largest_packet(view), "those of [srtp.rtsp]'s media"};
  }
  bool check_deadlines(engine::SectionView& view, std::chrono::nanoseconds bound) const override {
    if (!view.section.has("rtsp")) return true;
    Settings section = view.section.section("rtsp");
    return rtsp::check_medium_deadlines(section, bound);
  }

  std::string_view text() const override {
    return "of an element \"srtp\" its\n"
           "streams; those of [srtp.rtsp], and where there are fewer than lanes, are made up with random keys. What is "
           "to be\n"
           "unprotected is protected first, by streams that have the same keys.";
  }
  std::string without_limits(const std::string& text) const override { return function::without_limits(text); }
  Made make_streams(engine::SectionView& view) const override { return made_streams(view); }
  Expected<std::unique_ptr<engine::Traffic>> make_traffic(engine::SectionView& view, unsigned most,
                                                          unsigned lanes) const override {
    return MediaTraffic::make(view, most, lanes);
  }
};

}  // namespace

void* find_srtp_type_trait(std::string_view name) {
  static Type type;
  return engine::offer<engine::Api, engine::Verbs, engine::Advice, engine::StreamSource, engine::Calibration>(name,
                                                                                                              &type);
}

}  // namespace sluice::function
