#include "control/function_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/element.h"

namespace sluice::control {
namespace {

using Names = std::vector<std::string>;

const std::string plugin = "metrics_plugin";  // as of a shared object
const std::string file = "/usr/lib/sluice/metrics.so (metrics 1.0)";

class Counting final : public engine::Element, public engine::Metrics {
 public:
  // Without names metrics() throws.
  explicit Counting(Names names) : names_(std::move(names)) {}
  void apply(engine::Batch& /*batch*/, engine::Span /*span*/, engine::Emitter& /*out*/) override {}
  void* find_trait(std::string_view name) override { return engine::offer<engine::Metrics>(name, this); }
  std::vector<engine::Metric> metrics() const override {
    if (names_.empty()) throw std::runtime_error("no numbers today");
    std::vector<engine::Metric> all;
    for (const std::string& name : names_) all.push_back({name, "counted", 3});
    return all;
  }

 private:
  const Names names_;
};

engine::Pipeline pipeline_of(Names names) {
  std::vector<std::unique_ptr<engine::Element>> elements;
  elements.push_back(std::make_unique<Counting>(std::move(names)));
  return engine::Pipeline(std::move(elements));
}

class FunctionMetrics : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (engine::find_element(plugin) != nullptr) return;
    const auto make = [](Settings&, const engine::PortTable&) -> Expected<std::unique_ptr<engine::Element>> {
      return make_error("only its name is needed");
    };
    ASSERT_TRUE(engine::add_elements({{.name = plugin, .text = "counts", .make = make, .origin = file}}));
  }
  static std::string check(const Names& names, const std::string& function = plugin) {
    const engine::Pipeline pipeline = pipeline_of(names);
    const auto checked = check_metrics(pipeline, std::vector{function});
    return checked ? "" : checked.error().message;
  }
  static Names shown(const Names& names, const std::string& function = plugin) {
    const engine::Pipeline pipeline = pipeline_of(names);
    Names left;
    for (const MetricSnapshot& metric : element_metrics(pipeline, std::vector{function})) left.push_back(metric.name);
    return left;
  }
};

TEST_F(FunctionMetrics, OfAPluginBeginWithItsName) {
  EXPECT_EQ(check({"metrics_plugin_seen", "metrics_plugin_wait_ns"}), "");
  const std::string place = "[engine] chain: function 'metrics_plugin' of " + file + ": its metric ";
  const std::string prefix = ": the name has to begin with the function's, as 'metrics_plugin_...'";
  const std::string rule = ": a name has small letters, digits and '_', and a letter first";
  EXPECT_EQ(check({"metrics_plugin_seen", "drops"}), place + "'drops'" + prefix);
  EXPECT_EQ(check({"metrics_plugin_"}), place + "'metrics_plugin_'" + prefix);
  EXPECT_EQ(check({"metrics_plugin_a b"}), place + "'metrics_plugin_a b'" + rule);
  EXPECT_EQ(check({"metrics_plugin_a\nb"}), place + "'metrics_plugin_a?b'" + rule);
  EXPECT_EQ(check({""}), place + "''" + rule);
  EXPECT_EQ(check({"metrics_plugin_a", "metrics_plugin_a"}), place + "'metrics_plugin_a' is there twice");
}

TEST_F(FunctionMetrics, OfABuiltInOneMayHaveItsPartsNames) {
  EXPECT_EQ(check({"rtsp_media"}, "srtp"), "");
  EXPECT_NE(check({"rtsp media"}, "srtp"), "");
}

TEST_F(FunctionMetrics, ThatAreNoneAreLeftOut) {
  EXPECT_EQ(shown({"metrics_plugin_seen", "drops", "metrics_plugin_a b"}), Names{"metrics_plugin_seen"});
}

TEST_F(FunctionMetrics, ThatThrowAreNone) {
  EXPECT_EQ(check({}), "");
  EXPECT_EQ(shown({}), Names());
  EXPECT_THROW((void)shown({}, "srtp"), std::runtime_error);
}

}  // namespace
}  // namespace sluice::control
