import static java.util.Collections.singletonMap;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.DataFiles;
import org.apache.iceberg.FileScanTask;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.Schema;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.TableCommit;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.exceptions.BadRequestException;
import org.apache.iceberg.exceptions.ForbiddenException;
import org.apache.iceberg.exceptions.NoSuchNamespaceException;
import org.apache.iceberg.exceptions.NoSuchTableException;
import org.apache.iceberg.exceptions.NoSuchViewException;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.rest.RESTCatalog;
import org.apache.iceberg.types.Types;

/**
 * What Iceberg's own Java client can do with databases and warehouses that are named with a selector. Takes the address
 * of the Iceberg protocol, at which {@code test_java.py} has made database {@code sales}: {@code orders} with two rows
 * and {@code lines} with one are in its branch {@code draft} and its tags {@code v1} and {@code frozen.1.0}; {@code main}
 * has {@code bookings} alone.
 */
public class ReferenceCheck {
  private static final Schema SCHEMA =
      new Schema(
          Types.NestedField.required(1, "id", Types.LongType.get()),
          Types.NestedField.optional(2, "word", Types.StringType.get()));
  private static final Namespace MAIN = Namespace.of("sales");
  private static final Namespace BRANCH = Namespace.of("sales$branch_draft");
  private static final Namespace TAG = Namespace.of("sales$tag_v1");

  private final String endpoint;
  private final RESTCatalog catalog;
  private final Map<String, Check> checks = new LinkedHashMap<>();

  private interface Check {
    void run() throws Exception;
  }

  public static void main(String[] arguments) throws Exception {
    try (RESTCatalog catalog = open(arguments[0], "lake")) {
      System.exit(new ReferenceCheck(arguments[0], catalog).runAll() ? 0 : 1);
    }
  }

  private static RESTCatalog open(String endpoint, String warehouse) {
    RESTCatalog catalog = new RESTCatalog();
    catalog.setConf(new Configuration());
    catalog.initialize(warehouse, Map.of("uri", endpoint, "warehouse", warehouse));
    return catalog;
  }

  private ReferenceCheck(String endpoint, RESTCatalog catalog) {
    this.endpoint = endpoint;
    this.catalog = catalog;
    checks.put("with database and tag alone, tables, schemas and rows are found", this::consume);
    checks.put("namespaces are listed by their plain names", this::listing);
    checks.put("tables of a branch are created, changed, renamed and dropped", this::tables);
    checks.put("commitTransaction changes two tables of a branch", this::commitTransaction);
    checks.put("a branch has nested namespaces of its own", this::nested);
    checks.put("a branch has views of its own", this::views);
    checks.put("a tag refuses every write as Forbidden", this::readOnly);
    checks.put("a reference that is missing is never main", this::missing);
    checks.put("databases are not created or dropped through a selector", this::databases);
    checks.put("dots in the name of a reference are found as one level and as several", this::dots);
    checks.put("a warehouse shows the databases that have its branch under plain names", this::warehouse);
  }

  private boolean runAll() {
    boolean allHold = true;
    String mainBefore = describe(MAIN);
    for (Map.Entry<String, Check> check : checks.entrySet()) {
      try {
        check.getValue().run();
        expectEqual(mainBefore, describe(MAIN));
        System.out.println("ok      " + check.getKey());
      } catch (Throwable failure) {
        allHold = false;
        System.out.println("FAILED  " + check.getKey());
        failure.printStackTrace(System.out);
      }
    }
    return allHold;
  }

  private void consume() throws Exception {
    expectEqual("[lines, orders]", names(TAG));
    Table orders = catalog.loadTable(TableIdentifier.of(TAG, "orders"));
    expect(orders.schema().findField("word") != null && orders.schema().columns().size() == 2, "the schema is frozen");
    expectEqual(2L, rows(orders));
    expectEqual(1L, rows(catalog.loadTable(TableIdentifier.of(TAG, "lines"))));
    expectEqual("[bookings]", names(MAIN));
  }

  private void listing() {
    expectEqual(List.of(MAIN), catalog.listNamespaces());
    expect(catalog.namespaceExists(BRANCH) && catalog.namespaceExists(TAG), "those with a selector are there");
  }

  private void tables() throws Exception {
    TableIdentifier fresh = TableIdentifier.of(BRANCH, "fresh");
    TableIdentifier renamed = TableIdentifier.of(BRANCH, "renamed");
    Table table = catalog.createTable(fresh, SCHEMA, PartitionSpec.unpartitioned(), singletonMap("owner", "ada"));
    table.newAppend().appendFile(dataFile(table, "a")).commit();
    table.updateSchema().addColumn("amount", Types.LongType.get()).commit();
    catalog.renameTable(fresh, renamed);
    expectEqual(3, catalog.loadTable(renamed).schema().columns().size());
    expectEqual("[lines, orders, renamed]", names(BRANCH));
    expect(catalog.dropTable(renamed, true) && !catalog.tableExists(renamed), "it is dropped");
    Table orders = catalog.loadTable(TableIdentifier.of(BRANCH, "orders"));
    orders.newAppend().appendFile(dataFile(orders, "b")).commit();
    expectEqual(3L, rows(orders));
    expectEqual(2L, rows(catalog.loadTable(TableIdentifier.of(TAG, "orders"))));
  }

  private void commitTransaction() {
    TableIdentifier orders = TableIdentifier.of(BRANCH, "orders");
    TableIdentifier lines = TableIdentifier.of(BRANCH, "lines");
    catalog.commitTransaction(tierChange(orders), tierChange(lines));
    expectEqual("gold", catalog.loadTable(orders).properties().get("tier"));
    expectEqual("gold", catalog.loadTable(lines).properties().get("tier"));
  }

  private TableCommit tierChange(TableIdentifier identifier) {
    TableMetadata base = ((BaseTable) catalog.loadTable(identifier)).operations().current();
    TableMetadata changed = TableMetadata.buildFrom(base).setProperties(singletonMap("tier", "gold")).build();
    return TableCommit.create(identifier, base, changed);
  }

  private void nested() {
    Namespace europe = Namespace.of(BRANCH.level(0), "europe");
    catalog.createNamespace(europe, singletonMap("owner", "ada"));
    expectEqual(List.of(europe), catalog.listNamespaces(BRANCH));
    catalog.createTable(TableIdentifier.of(europe, "orders"), SCHEMA);
    expect(catalog.listNamespaces(MAIN).isEmpty(), "main has none");
    expect(catalog.dropTable(TableIdentifier.of(europe, "orders"), false), "its table is dropped");
    expect(catalog.dropNamespace(europe), "it is dropped");
  }

  private void views() {
    TableIdentifier identifier = TableIdentifier.of(BRANCH, "order_ids");
    catalog
        .buildView(identifier)
        .withSchema(SCHEMA)
        .withDefaultNamespace(BRANCH)
        .withQuery("spark", "SELECT id FROM orders")
        .create();
    expectEqual(List.of(identifier), catalog.listViews(BRANCH));
    catalog.buildView(identifier).withSchema(SCHEMA).withDefaultNamespace(BRANCH).withQuery("spark", "SELECT 1").replace();
    expectEqual("SELECT 1", catalog.loadView(identifier).sqlFor("spark").sql());
    expect(catalog.listViews(MAIN).isEmpty(), "main has none");
    expectThrown(NoSuchViewException.class, () -> catalog.loadView(TableIdentifier.of(MAIN, "order_ids")));
    expect(catalog.dropView(identifier), "it is dropped");
  }

  private void readOnly() {
    TableIdentifier identifier = TableIdentifier.of(TAG, "orders");
    Table orders = catalog.loadTable(identifier);
    expectThrown(ForbiddenException.class, () -> orders.newAppend().appendFile(dataFile(orders, "c")).commit());
    expectThrown(ForbiddenException.class, () -> orders.updateSchema().addColumn("x", Types.LongType.get()).commit());
    expectThrown(ForbiddenException.class, () -> catalog.createTable(TableIdentifier.of(TAG, "fresh"), SCHEMA));
    expectThrown(ForbiddenException.class, () -> catalog.renameTable(identifier, TableIdentifier.of(TAG, "fresh")));
    expectThrown(ForbiddenException.class, () -> catalog.dropTable(identifier, true));
    expectEqual("[lines, orders]", names(TAG));
  }

  private void missing() {
    for (String name : List.of("sales$branch_nowhere", "sales$tag_nowhere", "sales$tag_draft", "sales$branch_v1")) {
      Namespace nowhere = Namespace.of(name);
      expect(!catalog.namespaceExists(nowhere), name + " is not there");
      expectThrown(NoSuchNamespaceException.class, () -> catalog.listTables(nowhere));
      expectThrown(NoSuchTableException.class, () -> catalog.loadTable(TableIdentifier.of(nowhere, "bookings")));
      expectThrown(NoSuchNamespaceException.class, () -> catalog.createTable(TableIdentifier.of(nowhere, "fresh"), SCHEMA));
    }
  }

  private void databases() {
    expectThrown(BadRequestException.class, () -> catalog.createNamespace(Namespace.of("sales$branch_fresh")));
    expectThrown(BadRequestException.class, () -> catalog.dropNamespace(BRANCH));
    expectThrown(BadRequestException.class, () -> catalog.setProperties(BRANCH, singletonMap("owner", "ada")));
  }

  private void dots() throws Exception {
    Namespace whole = Namespace.of("sales$tag_frozen.1.0");
    Namespace split = Namespace.of("sales$tag_frozen", "1", "0");
    for (Namespace frozen : List.of(whole, split)) {
      expectEqual("[lines, orders]", names(frozen));
      expectEqual(2L, rows(catalog.loadTable(TableIdentifier.of(frozen, "orders"))));
      expectThrown(ForbiddenException.class, () -> catalog.createTable(TableIdentifier.of(frozen, "fresh"), SCHEMA));
    }
    expectThrown(NoSuchNamespaceException.class, () -> catalog.listTables(Namespace.of("sales$tag_frozen", "1")));
  }

  private void warehouse() throws Exception {
    try (RESTCatalog onBranch = open(endpoint, "lake$branch_draft")) {
      expectEqual(List.of(MAIN), onBranch.listNamespaces());
      Table orders = onBranch.loadTable(TableIdentifier.of(MAIN, "orders"));
      long before = rows(orders);
      orders.newAppend().appendFile(dataFile(orders, "d")).commit();
      expectEqual(before + 1, rows(catalog.loadTable(TableIdentifier.of(BRANCH, "orders"))));
      expectEqual(2L, rows(onBranch.loadTable(TableIdentifier.of(TAG, "orders"))));
      expectThrown(BadRequestException.class, () -> onBranch.createNamespace(Namespace.of("fresh")));
    }
  }

  private String names(Namespace namespace) {
    TreeSet<String> names = new TreeSet<>();
    catalog.listTables(namespace).forEach(identifier -> names.add(identifier.name()));
    return names.toString();
  }

  /** Everything in a namespace, with the version that it is at. */
  private String describe(Namespace namespace) {
    TreeSet<String> tables = new TreeSet<>();
    for (TableIdentifier identifier : catalog.listTables(namespace)) {
      Table table = catalog.loadTable(identifier);
      tables.add(identifier.name() + " " + table.currentSnapshot() + " " + table.schema() + " " + table.properties());
    }
    return tables + " " + catalog.listViews(namespace) + " " + catalog.listNamespaces(namespace);
  }

  private static long rows(Table table) throws Exception {
    long count = 0;
    try (CloseableIterable<FileScanTask> tasks = table.newScan().planFiles()) {
      for (FileScanTask task : tasks) {
        count += task.file().recordCount();
      }
    }
    return count;
  }

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
