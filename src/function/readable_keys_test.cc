#include "function/readable_keys.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace sluice::function {
namespace {

namespace fs = std::filesystem;

class ReadableKeys : public testing::Test {
 protected:
  ReadableKeys() { std::ofstream(file_).flush(); }
  ~ReadableKeys() override { fs::remove(file_); }
  std::string note(const std::string& text, fs::perms perms) {
    fs::permissions(file_, perms);
    engine::SectionView view{Settings::from_text(text, file_.string(), diagnostics_)->section("srtp"), options_, ports_,
                             file_.string()};
    return readable_keys_note(view, "stream");
  }

  const fs::path file_ = fs::path(testing::TempDir()) / ("keys-" + std::to_string(getpid()) + ".toml");
  Diagnostics diagnostics_;
  const engine::Options options_;
  const engine::PortTable ports_{{}};
};

TEST_F(ReadableKeys, AreNotedWhereEverybodyMayReadThem) {
  EXPECT_EQ(note("[[srtp.stream]]\n", fs::perms(0644)),
            file_.string() + ": every user of this machine can read its keys: chmod o= " + file_.string());
  EXPECT_EQ(note("[[srtp.stream]]\n", fs::perms(0640)), "");
}

TEST_F(ReadableKeys, AreNotNotedWhereThereAreNone) {
  EXPECT_EQ(note("[srtp]\n", fs::perms(0644)), "");
}

}  // namespace
}  // namespace sluice::function
