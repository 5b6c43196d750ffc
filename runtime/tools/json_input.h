// JSON written by a user, read with errors that name file, key and both values.
#pragma once
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace kiln::rt::tools {

/// A value of a file. Functions that read throw UserError "FILE: args[2].shape: …".
class Input {
 public:
  /// Throws UserError: no such file, or no JSON, with the place.
  static Input parse(const std::filesystem::path& file);

  const nlohmann::json& json() const { return *value_; }
  const std::string& key() const { return key_; }
  const std::filesystem::path& file() const { return *file_; }

  bool has(const char* key) const { return value_->is_object() && value_->contains(key); }
  /// A member that must be there.
  Input operator[](const char* key) const;
  /// An element of an array.
  Input operator[](std::size_t i) const;
  std::size_t size() const { return value_->size(); }

  void must_be_object() const;
  void must_be_array() const;
  /// An object has no keys but these; a misspelt one would go unnoticed.
  void only(std::initializer_list<const char*> keys) const;

  std::string text() const;
  bool boolean() const;
  std::int64_t integer(std::int64_t least, std::int64_t most) const;
  double number() const;

  [[noreturn]] void fail(const std::string& what) const;
  /// The value as it stands, cut where it is long.
  std::string shown() const;

 private:
  Input(std::shared_ptr<const nlohmann::json> root, const nlohmann::json& value, std::string key,
        std::shared_ptr<const std::filesystem::path> file)
      : root_(std::move(root)), value_(&value), key_(std::move(key)), file_(std::move(file)) {}

  std::shared_ptr<const nlohmann::json> root_;
  const nlohmann::json* value_;
  std::string key_;
  std::shared_ptr<const std::filesystem::path> file_;
};

}  // namespace kiln::rt::tools
