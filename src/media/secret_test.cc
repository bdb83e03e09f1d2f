#include "media/secret.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace sluice::media {
namespace {

std::string decoded(std::string_view text) {
  const auto bytes = base64_decode(text);
  return bytes ? std::string(bytes->begin(), bytes->end()) : "error: " + bytes.error().message;
}

TEST(Base64, ThereAndBack) {
  // RFC 4648 section 10.
  for (const auto& [plain, text] : std::initializer_list<std::pair<std::string_view, std::string_view>>{
           {"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"foob", "Zm9vYg=="}, {"foobar", "Zm9vYmFy"}}) {
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(plain.data());
    EXPECT_EQ(base64_encode({bytes, plain.size()}).view(), text);
    EXPECT_EQ(decoded(text), plain);
  }
  EXPECT_EQ(decoded("Zm9vYg"), "foob") << "padding may be missing";
  EXPECT_EQ(base64_decode("//79")->at(0), 0xff);
}

TEST(Base64, IsRefused) {
  for (const std::string_view text :
       {"Z", "Zm9vY", "Zg=", "Zg===", "Zm9v=", "Zm9v====", "=", "====", "Zh==", "Zm9", "Zm 9", "Zm9v\n", "Zm-_"}) {
    EXPECT_FALSE(base64_decode(text)) << text;
  }
}

TEST(SecretText, ConsumeWipesWhatGoes) {
  SecretText text("secretsecret and more");
  const char* const memory = text.view().data();
  text.consume(12);
  EXPECT_EQ(text.view(), " and more");
  const std::string after(memory + text.size(), 12);
  EXPECT_EQ(after, std::string(12, '\0'));
  text.consume(100);
  EXPECT_TRUE(text.empty());
}

// A text that is as short as this lies in the object.
TEST(WipedString, IsWiped) {
  alignas(WipedString) char memory[sizeof(WipedString)] = {};
  auto* const text = new (memory) WipedString("a short key");
  const auto shown = [&] { return std::string(memory, sizeof memory).find("short key") != std::string::npos; };
  EXPECT_EQ(text->text(), "a short key");
  EXPECT_TRUE(shown());
  text->~WipedString();
  EXPECT_FALSE(shown());
}

TEST(MasterKey, HoldsAndCompares) {
  const std::uint8_t bytes[50] = {1, 2, 3};
  EXPECT_EQ(MasterKey({bytes, 30}).size(), 30U);
  EXPECT_EQ(MasterKey(bytes).size(), MasterKey::capacity);
  EXPECT_TRUE(MasterKey({bytes, 30}) == MasterKey({bytes, 30}));
  EXPECT_FALSE(MasterKey({bytes, 30}) == MasterKey({bytes, 28}));
  EXPECT_FALSE(MasterKey({bytes, 30}) == MasterKey({bytes + 1, 30}));
  EXPECT_TRUE(MasterKey().empty());
}

TEST(MasterKey, IsWiped) {
  alignas(MasterKey) unsigned char memory[sizeof(MasterKey)] = {};
  const volatile unsigned char* const seen = memory;
  const auto marks = [seen] {
    std::size_t count = 0;
    for (std::size_t i = 0; i < sizeof(MasterKey); ++i) {
      count += seen[i] == 0xaa ? 1 : 0;
    }
    return count;
  };
  std::uint8_t bytes[30];
  std::memset(bytes, 0xaa, sizeof bytes);
  auto* const key = new (memory) MasterKey(bytes);
  EXPECT_EQ(marks(), 30U);
  key->~MasterKey();
  EXPECT_EQ(marks(), 0U);
}

TEST(SystemRandom, Fills) {
  std::uint8_t first[64] = {};
  std::uint8_t second[64] = {};
  ASSERT_TRUE(system_random(first));
  ASSERT_TRUE(system_random(second));
  EXPECT_NE(std::memcmp(first, second, sizeof first), 0);
}

}  // namespace
}  // namespace sluice::media
