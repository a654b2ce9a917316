import static java.util.Collections.singleton;
import static java.util.Collections.singletonMap;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.DataFiles;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.Schema;
import org.apache.iceberg.SortOrder;
import org.apache.iceberg.Table;
import org.apache.iceberg.Transaction;
import org.apache.iceberg.UpdateSchema;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.TableCommit;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.exceptions.AlreadyExistsException;
import org.apache.iceberg.exceptions.CommitFailedException;
import org.apache.iceberg.exceptions.NoSuchNamespaceException;
import org.apache.iceberg.exceptions.NoSuchTableException;
import org.apache.iceberg.exceptions.NoSuchViewException;
import org.apache.iceberg.rest.RESTCatalog;
import org.apache.iceberg.types.Types;
import org.apache.iceberg.view.View;

/**
 * What Iceberg's own Java client may expect of a catalog. Takes the address of the Iceberg protocol and the names to
 * try; prints a line for each property and ends with status 1 if one does not hold. The client asks its maps for null,
 * which those of {@code Map.of} refuse, hence {@code singletonMap}.
 */
public class CatalogCheck {
  private static final Schema SCHEMA =
      new Schema(
          Types.NestedField.required(1, "id", Types.LongType.get()),
          Types.NestedField.optional(2, "word", Types.StringType.get()));

  private final RESTCatalog catalog;
  private final Map<String, Check> checks = new LinkedHashMap<>();

  private interface Check {
    void run() throws Exception;
  }

  public static void main(String[] arguments) throws Exception {
    List<String> oddNames = List.of(arguments).subList(1, arguments.length);
    try (RESTCatalog catalog = new RESTCatalog()) {
      catalog.setConf(new Configuration());
      catalog.initialize("anabranch", Map.of("uri", arguments[0], "warehouse", "lake"));
      System.exit(new CatalogCheck(catalog, oddNames).runAll() ? 0 : 1);
    }
  }

  private CatalogCheck(RESTCatalog catalog, List<String> oddNames) {
    this.catalog = catalog;
    checks.put("namespaces nest, carry properties and are listed by level", this::namespaces);
    checks.put("a namespace that is missing, there already or not empty is refused by its class", this::namespaceErrors);
    checks.put("a table is created, loaded, listed and dropped", this::tables);
    checks.put("a table that is missing or there already is refused by its class", this::tableErrors);
    checks.put("schema, partitioning, sort order and properties change", this::alterations);
    checks.put("an appended file becomes the current snapshot", this::append);
    checks.put("a staged create appears when it is committed, and not before", this::stagedCreate);
    checks.put("a replaced table keeps its identity and history", this::replace);
    checks.put("a table moves to another namespace with its identity", this::rename);
    checks.put("commitTransaction changes two tables or none", this::commitTransaction);
    checks.put("a commit on a stale version fails as CommitFailed", this::staleCommit);
    checks.put("a dropped table is registered again from its metadata file", this::register);
    checks.put("a view is created, replaced, renamed and dropped", this::views);
    checks.put("a branch and a tag of a table are set and removed", this::references);
    for (String name : oddNames) {
      checks.put("the name '" + name + "' works for namespaces and tables", () -> oddName(name));
    }
  }

  private boolean runAll() {
    boolean allHold = true;
    for (Map.Entry<String, Check> check : checks.entrySet()) {
      try {
        check.getValue().run();
        System.out.println("ok      " + check.getKey());
      } catch (Throwable failure) {
        allHold = false;
        System.out.println("FAILED  " + check.getKey());
        failure.printStackTrace(System.out);
      }
    }
    return allHold;
  }

  private void namespaces() {
    Namespace parent = Namespace.of("parent");
    Namespace child = Namespace.of("parent", "child");
    catalog.createNamespace(parent, singletonMap("owner", "ada"));
    catalog.createNamespace(child);
    expect(catalog.listNamespaces().contains(parent), "the parent is listed");
    expectEqual(List.of(child), catalog.listNamespaces(parent));
    catalog.setProperties(parent, singletonMap("tier", "gold"));
    catalog.removeProperties(parent, singleton("owner"));
    expectEqual("gold", catalog.loadNamespaceMetadata(parent).get("tier"));
    expect(!catalog.loadNamespaceMetadata(parent).containsKey("owner"), "the owner is removed");
    expect(catalog.dropNamespace(child) && catalog.dropNamespace(parent), "both are dropped");
    expect(!catalog.dropNamespace(parent), "a second drop finds nothing");
  }

  private void namespaceErrors() {
    Namespace namespace = newNamespace("namespace_errors");
    catalog.createTable(TableIdentifier.of(namespace, "orders"), SCHEMA);
    expectThrown(AlreadyExistsException.class, () -> catalog.createNamespace(namespace));
    // This version of the client has one class for every 409 on a namespace.
    expectThrown(AlreadyExistsException.class, () -> catalog.dropNamespace(namespace));
    expect(catalog.namespaceExists(namespace), "it is still there");
    expectThrown(NoSuchNamespaceException.class, () -> catalog.loadNamespaceMetadata(Namespace.of("missing")));
    expectThrown(NoSuchNamespaceException.class, () -> catalog.listTables(Namespace.of("missing")));
    expectThrown(NoSuchNamespaceException.class, () -> catalog.listNamespaces(Namespace.of("missing")));
    expectThrown(RuntimeException.class, () -> catalog.createNamespace(Namespace.of("missing", "child")));
    expect(!catalog.namespaceExists(Namespace.of("missing", "child")), "a parent is never made on the way");
  }

  private void tables() {
    Namespace namespace = newNamespace("tables");
    TableIdentifier orders = TableIdentifier.of(namespace, "orders");
    Table created = catalog.createTable(orders, SCHEMA, PartitionSpec.unpartitioned(), singletonMap("owner", "ada"));
    Table loaded = catalog.loadTable(orders);
    expectEqual(created.uuid(), loaded.uuid());
    expectEqual("ada", loaded.properties().get("owner"));
    expect(loaded.schema().sameSchema(SCHEMA), "the schema is as declared");
    expectEqual(List.of(orders), catalog.listTables(namespace));
    expect(catalog.tableExists(orders), "it exists");
    expect(catalog.dropTable(orders, false), "it is dropped");
    expect(!catalog.dropTable(orders, false), "a second drop finds nothing");
    expect(!catalog.tableExists(orders), "it is gone");
  }

  private void tableErrors() {
    Namespace namespace = newNamespace("table_errors");
    TableIdentifier orders = TableIdentifier.of(namespace, "orders");
    TableIdentifier missing = TableIdentifier.of(namespace, "missing");
    TableIdentifier nowhere = TableIdentifier.of("nowhere", "orders");
    catalog.createTable(orders, SCHEMA);
    expectThrown(AlreadyExistsException.class, () -> catalog.createTable(orders, SCHEMA));
    expectThrown(NoSuchTableException.class, () -> catalog.loadTable(missing));
    expectThrown(NoSuchTableException.class, () -> catalog.loadTable(nowhere));
    expectThrown(NoSuchNamespaceException.class, () -> catalog.createTable(nowhere, SCHEMA));
    expectThrown(NoSuchTableException.class, () -> catalog.renameTable(missing, TableIdentifier.of(namespace, "other")));
    expectThrown(NoSuchNamespaceException.class, () -> catalog.renameTable(orders, nowhere));
  }

  private void alterations() {
    Table table = newTable("alterations");
    table.updateSchema().addColumn("amount", Types.IntegerType.get()).renameColumn("word", "label").commit();
    table.updateSchema().updateColumn("amount", Types.LongType.get()).commit();
    table.updateSpec().addField("id").commit();
    table.replaceSortOrder().desc("amount").commit();
    table.updateProperties().set("tier", "gold").commit();
    Table loaded = catalog.loadTable(identifier("alterations"));
    expectEqual(Types.LongType.get(), loaded.schema().findType("amount"));
    expect(loaded.schema().findField("label") != null, "the column is renamed");
    expectEqual(1, loaded.spec().fields().size());
    expectEqual(1, loaded.sortOrder().fields().size());
    expectEqual("gold", loaded.properties().get("tier"));
  }

  private void append() {
    Table table = newTable("append");
    table.newAppend().appendFile(dataFile(table, "a")).commit();
    table.newAppend().appendFile(dataFile(table, "b")).commit();
    Table loaded = catalog.loadTable(identifier("append"));
    expectEqual("2", loaded.currentSnapshot().summary().get("total-data-files"));
    expectEqual(2, loaded.history().size());
  }

  private void stagedCreate() {
    TableIdentifier orders = TableIdentifier.of(newNamespace("staged_create"), "orders");
    Transaction transaction =
        catalog
            .buildTable(orders, SCHEMA)
            .withPartitionSpec(PartitionSpec.builderFor(SCHEMA).identity("word").build())
            .withSortOrder(SortOrder.builderFor(SCHEMA).asc("id").build())
            .withProperty("owner", "ada")
            .createTransaction();
    transaction.updateProperties().set("tier", "gold").commit();
    expect(!catalog.tableExists(orders), "nothing is there before the commit");
    transaction.commitTransaction();
    Table loaded = catalog.loadTable(orders);
    expectEqual("ada", loaded.properties().get("owner"));
    expectEqual("gold", loaded.properties().get("tier"));
    expectEqual(1, loaded.spec().fields().size());
    expectEqual(1, loaded.sortOrder().fields().size());
  }

  private void replace() {
    Table before = newTable("replace");
    before.newAppend().appendFile(dataFile(before, "a")).commit();
    Schema other = new Schema(Types.NestedField.required(1, "code", Types.StringType.get()));
    catalog.buildTable(identifier("replace"), other).replaceTransaction().commitTransaction();
    Table after = catalog.loadTable(identifier("replace"));
    expectEqual(before.uuid(), after.uuid());
    expect(after.schema().findField("code") != null && after.schema().findField("word") == null, "the schema is new");
    expect(after.currentSnapshot() == null, "it is empty");
    expect(after.snapshots().iterator().hasNext(), "its history stays");
  }

  private void rename() {
    Table table = newTable("rename");
    TableIdentifier target = TableIdentifier.of(newNamespace("renamed"), "bookings");
    catalog.renameTable(identifier("rename"), target);
    expect(!catalog.tableExists(identifier("rename")), "the old name is free");
    expectEqual(table.uuid(), catalog.loadTable(target).uuid());
    newTableAt(identifier("rename"));
    expectThrown(AlreadyExistsException.class, () -> catalog.renameTable(identifier("rename"), target));
  }

  private void commitTransaction() {
    Table first = newTable("commit_first");
    Table second = newTable("commit_second");
    catalog.commitTransaction(
        addColumn(first, "commit_first", "amount"), addColumn(second, "commit_second", "amount"));
    expect(hasColumn("commit_first", "amount") && hasColumn("commit_second", "amount"), "both tables changed");

    TableCommit fresh = addColumn(first, "commit_first", "discount");
    TableCommit stale = addColumn(second, "commit_second", "discount");
    catalog.loadTable(identifier("commit_second")).updateSchema().addColumn("rival", Types.LongType.get()).commit();
    expectThrown(CommitFailedException.class, () -> catalog.commitTransaction(fresh, stale));
    expect(!hasColumn("commit_first", "discount") && !hasColumn("commit_second", "discount"), "neither changed");
  }

  /** The change that adds a column, as it follows from the version of the table that the caller holds. */
  private TableCommit addColumn(Table table, String name, String column) {
    Transaction transaction = table.newTransaction();
    transaction.updateSchema().addColumn(column, Types.IntegerType.get()).commit();
    return TableCommit.create(
        identifier(name),
        operations(table).current(),
        operations(transaction.table()).current());
  }

  private static org.apache.iceberg.TableOperations operations(Table table) {
    return ((org.apache.iceberg.HasTableOperations) table).operations();
  }

  private void staleCommit() {
    newTable("stale");
    UpdateSchema late = catalog.loadTable(identifier("stale")).updateSchema().addColumn("late", Types.LongType.get());
    catalog.loadTable(identifier("stale")).updateSchema().addColumn("early", Types.LongType.get()).commit();
    expectThrown(CommitFailedException.class, late::commit);
    expect(hasColumn("stale", "early") && !hasColumn("stale", "late"), "only the first change is there");
  }

  private void register() {
    Table table = newTable("register");
    String metadataFile = operations(table).current().metadataFileLocation();
    catalog.dropTable(identifier("register"), false);
    TableIdentifier again = TableIdentifier.of(identifier("register").namespace(), "again");
    expectEqual(table.uuid(), catalog.registerTable(again, metadataFile).uuid());
    expectThrown(AlreadyExistsException.class, () -> catalog.registerTable(again, metadataFile));
  }

  private void views() {
    Namespace namespace = newNamespace("views");
    TableIdentifier big = TableIdentifier.of(namespace, "big");
    TableIdentifier large = TableIdentifier.of(namespace, "large");
    View view = buildView(big, "SELECT id FROM orders WHERE id > 10").create();
    expectThrown(AlreadyExistsException.class, () -> buildView(big, "SELECT 1").create());
    View replaced = buildView(big, "SELECT id FROM orders WHERE id > 20").replace();
    expectEqual(view.uuid(), replaced.uuid());
    expectEqual("SELECT id FROM orders WHERE id > 20", catalog.loadView(big).sqlFor("spark").sql());
    expectEqual(List.of(big), catalog.listViews(namespace));
    catalog.renameView(big, large);
    expect(catalog.viewExists(large) && !catalog.viewExists(big), "the view is renamed");
    expect(catalog.dropView(large), "it is dropped");
    expectThrown(NoSuchViewException.class, () -> catalog.loadView(large));
  }

  private org.apache.iceberg.view.ViewBuilder buildView(TableIdentifier identifier, String sql) {
    return catalog
        .buildView(identifier)
        .withSchema(SCHEMA)
        .withDefaultNamespace(identifier.namespace())
        .withQuery("spark", sql);
  }

  private void references() {
    Table table = newTable("references");
    table.newAppend().appendFile(dataFile(table, "a")).commit();
    long snapshot = table.currentSnapshot().snapshotId();
    table.manageSnapshots().createBranch("audit", snapshot).createTag("monday", snapshot).commit();
    Set<String> names = catalog.loadTable(identifier("references")).refs().keySet();
    expect(names.containsAll(Set.of("main", "audit", "monday")), "branch and tag are there: " + names);
    table.manageSnapshots().removeTag("monday").commit();
    expect(!catalog.loadTable(identifier("references")).refs().containsKey("monday"), "the tag is removed");
  }

  private void oddName(String name) {
    Namespace namespace = Namespace.of(name);
    Namespace nested = Namespace.of(name, "below " + name);
    TableIdentifier table = TableIdentifier.of(nested, name);
    TableIdentifier moved = TableIdentifier.of(namespace, name + " moved");
    catalog.createNamespace(namespace, singletonMap("title", name));
    catalog.createNamespace(nested);
    expectEqual(List.of(nested), catalog.listNamespaces(namespace));
    expectEqual(name, catalog.loadNamespaceMetadata(namespace).get("title"));
    catalog.createTable(table, SCHEMA);
    expectEqual(List.of(table), catalog.listTables(nested));
    catalog.renameTable(table, moved);
    catalog.loadTable(moved).updateProperties().set("title", name).commit();
    expectEqual(name, catalog.loadTable(moved).properties().get("title"));
    expect(catalog.dropTable(moved, false), "the table is dropped");
    expect(catalog.dropNamespace(nested) && catalog.dropNamespace(namespace), "the namespaces are dropped");
  }

  private Namespace newNamespace(String name) {
    Namespace namespace = Namespace.of(name);
    catalog.createNamespace(namespace);
    return namespace;
  }

  /** The table of a check: `orders` in a namespace that has the check's name. */
  private static TableIdentifier identifier(String check) {
    return TableIdentifier.of(check, "orders");
  }

  private Table newTable(String check) {
    newNamespace(check);
    return newTableAt(identifier(check));
  }

  private Table newTableAt(TableIdentifier identifier) {
    return catalog.createTable(identifier, SCHEMA);
  }

  private boolean hasColumn(String check, String column) {
    return catalog.loadTable(identifier(check)).schema().findField(column) != null;
  }

  /** A data file that only the metadata knows. */
  private static DataFile dataFile(Table table, String name) {
    return DataFiles.builder(table.spec())
        .withPath(table.location() + "/data/" + name + ".parquet")
        .withFormat("parquet")
        .withFileSizeInBytes(10)
        .withRecordCount(1)
        .build();
  }

  private static void expect(boolean holds, String what) {
    if (!holds) {
      throw new AssertionError("not so: " + what);
    }
  }

  private static void expectEqual(Object expected, Object found) {
    expect(expected.equals(found), "expected " + expected + ", found " + found);
  }

  private static void expectThrown(Class<? extends Throwable> expected, Check check) {
    try {
      check.run();
    } catch (Throwable thrown) {
      if (expected.isInstance(thrown)) {
        return;
      }
      throw new AssertionError("expected " + expected.getSimpleName() + ", found " + thrown, thrown);
    }
    throw new AssertionError("expected " + expected.getSimpleName() + ", found none");
  }
}
